// The scalars of a step in host memory.
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_scalars.h>

#include <algorithm>

namespace binade::kernels {
namespace {

double full_scale(double scale, const View& tag) { return tag ? scale * *tag.as<double>() : scale; }

template <class T>
double first_non_finite(const View& flat) {
  const T* g = flat.as<T>();
  const T* found =
      std::find_if(g, g + flat.numel, [](T x) { return !std::isfinite(static_cast<double>(x)); });
  return found == g + flat.numel ? -1 : static_cast<double>(found - g);
}

}  // namespace

void cpu::loss_seed(const LossSeed& a) {
  check_arguments(a);
  auto& scaler = *a.scaler.as<ScalerScalars>();
  *a.tag.as<double>() = scaler.scale;
  dispatch_floating("loss_seed", a.loss.dtype, [&]<class T>(Type<T>) {
    scaler.loss = static_cast<double>(*a.loss.as<T>());
    *a.seed.as<T>() = static_cast<T>(static_cast<Compute<T>>(scaler.scale * a.weight));
  });
}

void cpu::unscale_gradient(const UnscaleGradient& a) {
  check_arguments(a);
  const double factor = 1 / full_scale(a.scale, a.tag);
  dispatch_floating("unscale_gradient", a.x.dtype, [&]<class T>(Type<T>) {
    const T* x = a.x.as<T>();
    auto* y = a.y.as<Compute<T>>();
    for (int64_t i = 0; i < a.x.numel; ++i) {
      y[i] = static_cast<Compute<T>>(x[i]) * static_cast<Compute<T>>(factor);
    }
  });
}

void cpu::step_stats(const StepStats& a) {
  check_arguments(a);
  double stats[2];
  gradient_stats({.grad = a.grad, .result = view_of(stats, DType::f64, {2})});
  auto& step_scalars = *a.step_scalars.as<OptimizerScalars>();
  if (a.first) {
    begin_measurement(step_scalars);
  }
  const double scale = full_scale(a.scale, a.tag);
  const double index = dispatch_floating("step_stats", a.grad.dtype, [&]<class T>(Type<T>) {
    return stats[1] == 0 ? 0 : first_non_finite<T>(a.grad);
  });
  add_measurement({.squares = stats[0] / (scale * scale),
                   .non_finite = stats[1],
                   .first_position = a.position + index,
                   .scale = scale},
                  step_scalars);
}

void cpu::step_replaces(const StepReplaces& a) {
  check_arguments(a);
  auto& step_scalars = *a.step_scalars.as<OptimizerScalars>();
  step_scalars.replaces = must_replace(a.rule, *a.scaler.as<ScalerScalars>(), step_scalars);
}

void cpu::step_decide(const StepDecide& a) {
  check_arguments(a);
  *a.outcome.as<double>() =
      decide_step(a.request, a.scaler.as<ScalerScalars>(), *a.step_scalars.as<OptimizerScalars>());
}

void cpu::step_prepare(const StepPrepare& a) {
  check_arguments(a);
  const auto& step_scalars = *a.step_scalars.as<OptimizerScalars>();
  for (const UpdateCounter& counter : a.counters) {
    *counter.to = *counter.from + step_scalars.apply;
  }
  auto* result = a.result.as<RangeScalars>();
  for (const RangeSource& parameter_range : a.parameter_ranges) {
    *result++ = prepare_range(parameter_range, step_scalars);
  }
}

void cpu::schedule_step(const ScheduleStep& a) {
  check_arguments(a);
  if (*a.outcome.as<double>() != kStepApplied) {
    return;
  }
  auto& step_scalars = *a.step_scalars.as<ScheduleScalars>();
  step_scalars.position += 1;
  const int64_t row = schedule_row(step_scalars, a.table.sizes[0]);
  const int64_t groups = a.rates.sizes[0], k = a.rates.sizes[1];
  for (int64_t i = 0; i < groups * k; ++i) {
    a.rates.as<double>()[i / k * a.rates.strides[0] + i % k * a.rates.strides[1]] =
        a.table.as<double>()[row * groups * k + i];
  }
}

}  // namespace binade::kernels
