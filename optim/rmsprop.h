// RMSprop (Hinton, 2012), optionally centered (Graves, 2013). With gradient g and parameter p:
//   g += weight_decay p; square_avg = alpha square_avg + (1 - alpha) g^2;
//   u = g / (sqrt(square_avg) + eps), centered: square_avg minus grad_avg^2 under the root, with
//   grad_avg = alpha grad_avg + (1 - alpha) g;
//   with momentum: momentum_buffer = momentum momentum_buffer + u takes the place of u; p -= lr u.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class RMSprop : public Optimizer {
 public:
  using Options = RMSpropOptions;
  RMSprop(const ParameterList& parameters, const RMSpropOptions& options = {});
  RMSprop(std::vector<ParamGroup> groups, const RMSpropOptions& options = {});

 private:
  void update(const Range& range) override;
  bool keeps_zeros() const override;
  std::vector<RMSpropOptions> options_;  // of each group
};

}  // namespace binade::optim
