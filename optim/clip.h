// Gradient clipping. Norms and limits are of the true gradients, whatever scale they carry. What
// returns a norm waits for the device; StepOptions::clip_norm does not.
#pragma once
#include <binade/core/tensor/parameter.h>

#include <limits>

namespace binade::optim {

inline constexpr double kInfinityNorm = std::numeric_limits<double>::infinity();

// The norm_type-norm over all gradients (norm_type > 0, or kInfinityNorm for the largest
// magnitude). Not finite if an element is not.
double grad_norm(const ParameterList& parameters, double norm_type = 2);

// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before. Only the
// scale tags change, so nothing is flushed. A norm that is not finite leaves the gradients as they
// are, for the step's finite check to find, and is an error with error_if_nonfinite.
double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type = 2,
                      bool error_if_nonfinite = false);

// Clamps every element of the true gradients to [-limit, limit]. NaN and infinities stay, for
// the step's finite check to find.
void clip_grad_value(const ParameterList& parameters, double limit);

}  // namespace binade::optim
