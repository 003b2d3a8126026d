// NAdam and RAdam on the CPU, split over threads like the steps of optimizer_cpu.cpp.
#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_blocks_internal.h>
#include <binade/kernels/optimizer/optimizer_moment_internal.h>
#include <binade/kernels/optimizer/optimizer_moment_isa_internal.h>

namespace binade::kernels {

void cpu::moment_step(const MomentStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  const MomentNumbers now = moment_numbers({a.rule, a.beta2, a.momentum_decay}, w);
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    const StepRange all = step_range(a.param, a.master, a.grad, begin, end);
    step_elements(a, w, all, begin, [&](const StepRange& range, int64_t at) {
      moment_range_best(MomentRange{.range = range,
                                    .exp_avg = element(a.exp_avg, at),
                                    .exp_avg_sq = element(a.exp_avg_sq, at),
                                    .beta1 = w.momentum,
                                    .beta2 = a.beta2,
                                    .eps = a.eps,
                                    .grad_scale = w.multiplier,
                                    .coupled_decay = a.decoupled ? 0 : a.weight_decay,
                                    .shrink = a.decoupled ? 1 - w.lr * a.weight_decay : 1,
                                    .gradient = now.gradient,
                                    .average = now.average,
                                    .root = now.root,
                                    .adaptive = now.adaptive != 0});
    });
  });
}

}  // namespace binade::kernels
