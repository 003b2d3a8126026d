// Device scalars of a training step: kernels of one thread, or of one thread per parameter range,
// that run the rules of kernels/optimizer/step_rule.h on device memory. Also unscaling by a tag in
// device memory, one 16-byte vector per thread and turn.
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

// Parameter ranges and counters of one launch, by value: a kernel takes up to 4 KiB of arguments.
constexpr int kBatch = 32;
template <class T>
struct Batch {
  T items[kBatch];
  int count;
  explicit Batch(std::span<const T> source) : count(static_cast<int>(source.size())) {
    std::copy(source.begin(), source.end(), items);
  }
};

template <class T>
__global__ void loss_seed_kernel(const T* loss, ScalerScalars* scaler, double* tag, T* seed,
                                 double weight) {
  *tag = scaler->scale;
  scaler->loss = static_cast<double>(*loss);
  *seed = static_cast<T>(static_cast<Compute<T>>(scaler->scale * weight));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    unscale_gradient_kernel(dev::VectorSpan span, const T* __restrict__ x,
                            Compute<T>* __restrict__ y, double scale, const double* tag) {
  const auto factor = static_cast<Compute<T>>(1 / (scale * *tag));
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> values[kWidth];
    dev::load_as(x + at, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values[i] *= factor;
    }
    dev::store_from(y + at, values);
  });
}

__global__ void step_replaces_kernel(ScaleRule rule, ScalerScalars* scaler,
                                     OptimizerScalars* step_scalars) {
  step_scalars->replaces = must_replace(rule, *scaler, *step_scalars);
}

__global__ void step_decide_kernel(StepRequest request, ScalerScalars* scaler,
                                   OptimizerScalars* step_scalars, double* outcome) {
  *outcome = decide_step(request, scaler, *step_scalars);
}

__global__ void step_counters_kernel(Batch<UpdateCounter> counters,
                                     const OptimizerScalars* step_scalars) {
  if (static_cast<int>(threadIdx.x) < counters.count) {
    const UpdateCounter& counter = counters.items[threadIdx.x];
    *counter.to = *counter.from + step_scalars->apply;
  }
}

__global__ void step_prepare_kernel(Batch<RangeSource> parameter_ranges,
                                    const OptimizerScalars* step_scalars, RangeScalars* result) {
  if (static_cast<int>(threadIdx.x) < parameter_ranges.count) {
    result[threadIdx.x] = prepare_range(parameter_ranges.items[threadIdx.x], *step_scalars);
  }
}

// The learning rates etc. of a group are k adjacent scalars at group * stride.
struct RateShape {
  int64_t rows, groups, k, group_stride, stride;
};

__global__ void schedule_step_kernel(RateShape shape, const double* outcome,
                                     ScheduleScalars* step_scalars, const double* table,
                                     double* rates) {
  ScheduleScalars now = *step_scalars;
  const bool applied = *outcome == kStepApplied;
  now.position += applied ? 1 : 0;
  __syncthreads();  // all threads have read the scalars
  const int64_t count = applied ? shape.groups * shape.k : 0;
  const double* row = table + schedule_row(now, shape.rows) * shape.groups * shape.k;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    rates[i / shape.k * shape.group_stride + i % shape.k * shape.stride] = row[i];
  }
  if (threadIdx.x == 0) {
    *step_scalars = now;
  }
}

template <class T, class F>
void for_batches(std::span<const T> items, F f) {
  for (size_t at = 0; at < items.size(); at += kBatch) {
    f(Batch<T>(items.subspan(at, std::min<size_t>(kBatch, items.size() - at))), at);
  }
}

}  // namespace

void cuda::loss_seed(const LossSeed& a) {
  check_arguments(a);
  dispatch_floating("loss_seed", a.loss.dtype, [&]<class T>(Type<T>) {
    launch({"loss_seed_kernel", 1, 1}, loss_seed_kernel<T>, a.loss.as<T>(),
           a.scaler.as<ScalerScalars>(), a.tag.as<double>(), a.seed.as<T>(), a.weight);
  });
}

void cuda::unscale_gradient(const UnscaleGradient& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  dispatch_floating("unscale_gradient", a.x.dtype, [&]<class T>(Type<T>) {
    const auto span =
        dev::vector_span<dev::kVectorOf<T>>(a.x.numel, a.x.as<T>(), a.y.as<Compute<T>>());
    launch({"unscale_gradient_kernel", grid_blocks(span, dev::kVectorOf<T>, kThreads), kThreads},
           unscale_gradient_kernel<T>, span, a.x.as<T>(), a.y.as<Compute<T>>(), a.scale,
           a.tag.as<double>());
  });
}

void cuda::step_replaces(const StepReplaces& a) {
  check_arguments(a);
  launch({"step_replaces_kernel", 1, 1}, step_replaces_kernel, a.rule, a.scaler.as<ScalerScalars>(),
         a.step_scalars.as<OptimizerScalars>());
}

void cuda::step_decide(const StepDecide& a) {
  check_arguments(a);
  launch({"step_decide_kernel", 1, 1}, step_decide_kernel, a.request, a.scaler.as<ScalerScalars>(),
         a.step_scalars.as<OptimizerScalars>(), a.outcome.as<double>());
}

void cuda::step_prepare(const StepPrepare& a) {
  check_arguments(a);
  const auto* step_scalars = a.step_scalars.as<OptimizerScalars>();
  for_batches(a.counters, [&](const Batch<UpdateCounter>& batch, size_t) {
    launch({"step_counters_kernel", 1, kBatch}, step_counters_kernel, batch, step_scalars);
  });
  for_batches(a.parameter_ranges, [&](const Batch<RangeSource>& batch, size_t at) {
    launch({"step_prepare_kernel", 1, kBatch}, step_prepare_kernel, batch, step_scalars,
           a.result.as<RangeScalars>() + at);
  });
}

void cuda::schedule_step(const ScheduleStep& a) {
  check_arguments(a);
  const RateShape shape{a.table.sizes[0], a.rates.sizes[0], a.rates.sizes[1], a.rates.strides[0],
                        a.rates.strides[1]};
  launch({"schedule_step_kernel", 1, kBatch}, schedule_step_kernel, shape, a.outcome.as<double>(),
         a.step_scalars.as<ScheduleScalars>(), a.table.as<double>(), a.rates.as<double>());
}

}  // namespace binade::kernels
