// Optimizer steps on the CPU. Threads get whole blocks of elements, so an element's lane in a
// vector, and with it every bit of the result, depends on its index only. gradient_stats sums
// chunks of fixed size in order.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_blocks_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>

namespace binade::kernels {

void cpu::gradient_stats(const GradientStats& a) {
  check_arguments(a);
  const int64_t count = a.grad.numel;
  const int64_t chunks = (count + kElementsPerTask - 1) / kElementsPerTask;
  const Workspace partials(static_cast<size_t>(chunks) * 2 * sizeof(double));
  double* partial = partials.as<double>();
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kElementsPerTask;
      gradient_stats_range_best(
          GradientStatsRange{.dtype = a.grad.dtype,
                             .grad = element(a.grad, first),
                             .count = std::min(kElementsPerTask, count - first),
                             .result = partial + 2 * chunk});
    }
  });
  double* result = a.result.as<double>();
  result[0] = result[1] = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    result[0] += partial[2 * chunk];
    result[1] += partial[2 * chunk + 1];
  }
}

void cpu::sgd_step(const SGDStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    const StepRange all = step_range(a.param, a.master, a.grad, begin, end);
    step_elements(a, w, all, begin, [&](const StepRange& range, int64_t at) {
      sgd_range_best(SGDRange{.range = range,
                              .momentum_buffer = element(a.momentum_buffer, at),
                              .lr = w.lr,
                              .momentum = w.momentum,
                              .grad_scale = w.multiplier,
                              .weight_decay = a.weight_decay,
                              .dampening = a.dampening,
                              .nesterov = a.nesterov,
                              .first_step = w.update == 1});
    });
  });
}

void cpu::adam_step(const AdamStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    const StepRange all = step_range(a.param, a.master, a.grad, begin, end);
    step_elements(a, w, all, begin, [&](const StepRange& range, int64_t at) {
      adam_range_best(AdamRange{.range = range,
                                .exp_avg = element(a.exp_avg, at),
                                .exp_avg_sq = element(a.exp_avg_sq, at),
                                .max_exp_avg_sq = element(a.max_exp_avg_sq, at),
                                .beta1 = w.momentum,
                                .beta2 = a.beta2,
                                .eps = a.eps,
                                .step_size = w.lr * w.first_scale,
                                .second_scale = w.second_scale,
                                .grad_scale = w.multiplier,
                                .coupled_decay = a.decoupled ? 0 : a.weight_decay,
                                .shrink = a.decoupled ? 1 - w.lr * a.weight_decay : 1});
    });
  });
}

}  // namespace binade::kernels
