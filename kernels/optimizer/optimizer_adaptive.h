// RMSprop and Adagrad: steps over flat ranges of the parameter arena, under the conventions of
// kernels/optimizer/optimizer.h.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/optimizer/low_update.h>

namespace binade::kernels {

// g += weight_decay p; square_avg = alpha square_avg + (1 - alpha) g^2; u = g / (sqrt(square_avg) +
// eps); with grad_avg (centered) grad_avg = alpha grad_avg + (1 - alpha) g and u = g /
// (sqrt(square_avg - grad_avg^2) + eps), where a negative difference counts as 0; with
// momentum_buffer momentum_buffer = momentum momentum_buffer + u, and u = momentum_buffer; p -= lr
// u.
struct RMSpropStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& square_avg;
  double lr, alpha, eps, weight_decay, momentum;
  double grad_multiplier;
  const View& grad_avg = kNoView;
  const View& momentum_buffer = kNoView;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(rmsprop_step, RMSpropStep, param)

// g += weight_decay p; sum += g^2; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum) + eps), step
// from 1.
struct AdagradStep {
  const View& param;
  const View& master;
  const View& grad;
  const View& sum;
  double lr, lr_decay, eps, weight_decay;
  int64_t step;
  double grad_multiplier;
  const View& step_scalars = kNoView;
  const LowUpdate& low = kPlainUpdate;
};
BINADE_KERNEL(adagrad_step, AdagradStep, param)

}  // namespace binade::kernels
