// The line search of L-BFGS. Internal to optim.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <functional>

namespace binade::optim {

// The loss at start + t direction, its slope along the direction, and its gradient.
struct Trial {
  double t, loss, slope;
  Tensor gradient;
};

struct WolfeOptions {
  double t;                 // the first trial
  double direction;         // the largest element of the direction
  double tolerance_change;  // on the bracket times `direction`
  int64_t max_trials;       // after the first
  double armijo = 1e-4, curvature = 0.9;
};

struct WolfeResult {
  Trial best;
  int64_t evaluations;
};

// Brackets a step that satisfies the strong Wolfe conditions and zooms in on it, by PyTorch's
// rules. A loss that is not finite counts as infinite.
WolfeResult strong_wolfe(const std::function<Trial(double)>& evaluate, const Trial& start,
                         const WolfeOptions& options);

}  // namespace binade::optim
