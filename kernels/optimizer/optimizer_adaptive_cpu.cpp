// RMSprop and Adagrad on the CPU, split over threads like the steps of optimizer_cpu.cpp.
#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_adaptive_internal.h>
#include <binade/kernels/optimizer/optimizer_adaptive_isa_internal.h>
#include <binade/kernels/optimizer/optimizer_blocks_internal.h>

namespace binade::kernels {

void cpu::rmsprop_step(const RMSpropStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    const StepRange all = step_range(a.param, a.master, a.grad, begin, end);
    step_elements(a, w, all, begin, [&](const StepRange& range, int64_t at) {
      rmsprop_range_best(RMSpropRange{.range = range,
                                      .square_avg = element(a.square_avg, at),
                                      .grad_avg = element(a.grad_avg, at),
                                      .momentum_buffer = element(a.momentum_buffer, at),
                                      .lr = w.lr,
                                      .alpha = a.alpha,
                                      .eps = a.eps,
                                      .weight_decay = a.weight_decay,
                                      .momentum = w.momentum,
                                      .grad_scale = w.multiplier});
    });
  });
}

void cpu::adagrad_step(const AdagradStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  for_blocks(a.param.numel, [&](int64_t begin, int64_t end) {
    const StepRange all = step_range(a.param, a.master, a.grad, begin, end);
    step_elements(a, w, all, begin, [&](const StepRange& range, int64_t at) {
      adagrad_range_best(AdagradRange{.range = range,
                                      .sum = element(a.sum, at),
                                      .rate = adagrad_rate(w, a.lr_decay),
                                      .eps = a.eps,
                                      .weight_decay = a.weight_decay,
                                      .grad_scale = w.multiplier});
    });
  });
}

}  // namespace binade::kernels
