// Gradient clipping. Norms and limits refer to the true gradients, without their loss scale.
// Functions that return a norm wait for the device; StepOptions::clip_norm does not.
#pragma once
#include <binade/core/tensor/parameter.h>

#include <limits>

namespace binade::optim {

inline constexpr double kInfinityNorm = std::numeric_limits<double>::infinity();

// The norm_type-norm over all gradients (norm_type > 0, or kInfinityNorm for the largest
// magnitude). The result is not finite if an element is not.
double grad_norm(const ParameterList& parameters, double norm_type = 2);

// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before clipping.
// Only the scale tags change, so nothing is flushed. If the norm is not finite, the gradients do
// not change, so that the step's finite check finds it; with error_if_nonfinite it is an error.
double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type = 2,
                      bool error_if_nonfinite = false);

// Clamps every element of the true gradients to [-limit, limit]. NaN and infinities stay, so that
// the step's finite check finds them.
void clip_grad_value(const ParameterList& parameters, double limit);

}  // namespace binade::optim
