// Statistics of gradients on a device: sum of squares of the finite elements, number and first
// position of the others.
//
// There are two stages. Blocks stride over the gradient as 16-byte vectors; a thread adds squares
// in double, since squares of large f32 gradients overflow float; a block writes one partial. Then
// one block adds the partials in a fixed order. The number of blocks depends on the length only, so
// the bits are the same on any device. step_stats differs in the last write: it divides the sum by
// the square of the scale, which may be known to the device only, and adds it to the device scalars
// of the step.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/optimizer_internal.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostPartials = 1024, kVectorsPerThread = 4;

struct Stats {
  double squares;
  int64_t bad, first;  // `first` counts from the last element down, so that 0 is none
  __device__ Stats merge(const Stats& other) const {
    return {squares + other.squares, bad + other.bad, first > other.first ? first : other.first};
  }
};

using StatsMemory = dev::BlockReduceMemory<Stats, kThreads>;

template <class T>
__global__ void __launch_bounds__(kThreads)
    gradient_stats_partials_kernel(dev::VectorSpan span, const T* grad, Stats* partials) {
  auto& memory = dev::shared_mem<StatsMemory>();
  Stats stats{0, 0, 0};
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> g[kWidth];
    dev::load_as(grad + at, g);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (g[i] - g[i] == Compute<T>(0)) {  // inf - inf and NaN - NaN are NaN
        const auto value = static_cast<double>(g[i]);
        stats.squares += value * value;
      } else {
        stats = stats.merge({0, 1, span.n - (at + i)});
      }
    }
  });
  stats = dev::block_reduce<dev::Merge>(stats, memory);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = stats;
  }
}

// Where the statistics go: f64 [2], or the device scalars of a step.
struct Target {
  double* result = nullptr;
  OptimizerScalars* step_scalars = nullptr;
  double scale = 1;
  const double* tag = nullptr;
  double position = 0;
  bool first = false;
};

__global__ void __launch_bounds__(kThreads)
    gradient_stats_finish_kernel(const Stats* partials, int count, int64_t n, Target target) {
  auto& memory = dev::shared_mem<StatsMemory>();
  Stats stats{0, 0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    stats = stats.merge(partials[i]);
  }
  stats = dev::block_reduce<dev::Merge>(stats, memory);
  if (threadIdx.x != 0) {
    return;
  }
  const auto bad = static_cast<double>(stats.bad);
  if (target.result) {
    target.result[0] = stats.squares;
    target.result[1] = bad;
    return;
  }
  OptimizerScalars& step_scalars = *target.step_scalars;
  if (target.first) {
    begin_measurement(step_scalars);
  }
  const double scale = target.tag ? target.scale * *target.tag : target.scale;
  const int64_t index = n - stats.first;
  add_measurement({.squares = stats.squares / (scale * scale),
                   .non_finite = bad,
                   .first_position = target.position + static_cast<double>(index),
                   .scale = scale},
                  step_scalars);
}

void measure(const char* op, const View& grad, const Target& target) {
  dispatch_floating(op, grad.dtype, [&]<class T>(Type<T>) {
    const T* data = grad.as<T>();
    constexpr int64_t kPerBlock = kThreads * dev::kVectorOf<T> * kVectorsPerThread;
    const int64_t blocks = std::min(ceil_div(grad.numel, kPerBlock), kMostPartials);
    const Workspace memory(static_cast<size_t>(blocks) * sizeof(Stats), grad.device);
    if (blocks > 0) {
      launch({"gradient_stats_partials_kernel", static_cast<unsigned>(blocks), kThreads,
              sizeof(StatsMemory)},
             gradient_stats_partials_kernel<T>,
             dev::vector_span<dev::kVectorOf<T>>(grad.numel, data), data, memory.as<Stats>());
    }
    launch({"gradient_stats_finish_kernel", 1, kThreads, sizeof(StatsMemory)},
           gradient_stats_finish_kernel, memory.as<Stats>(), static_cast<int>(blocks), grad.numel,
           target);
  });
}

}  // namespace

void cuda::gradient_stats(const GradientStats& a) {
  check_arguments(a);
  measure("gradient_stats", a.grad, {.result = a.result.as<double>()});
}

void cuda::step_stats(const StepStats& a) {
  check_arguments(a);
  measure("step_stats", a.grad,
          {.step_scalars = a.step_scalars.as<OptimizerScalars>(),
           .scale = a.scale,
           .tag = a.tag.as<double>(),
           .position = a.position,
           .first = a.first});
}

}  // namespace binade::kernels
