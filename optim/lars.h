// LARS (You, Gitman and Ginsburg, 2017). With gradient g and parameter p; |p| and |g| are norms of
// the whole parameter:
//   ratio = trust_coefficient |p| / (|g| + weight_decay |p| + eps), 1 where |p| or |g| is 0;
//   momentum_buffer = momentum momentum_buffer + lr ratio (g + weight_decay p);
//   p -= momentum_buffer.
#pragma once
#include <binade/optim/layerwise.h>

namespace binade::optim {

struct LARSOptions {
  double lr = 1e-1;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  double trust_coefficient = 1e-3;
  double eps = 1e-9;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class LARS : public LayerwiseOptimizer {
 public:
  using Options = LARSOptions;
  LARS(const ParameterList& parameters, const LARSOptions& options = {});
  LARS(std::vector<ParamGroup> groups, const LARSOptions& options = {});

 private:
  void update(const Range& range) override;
  std::vector<LARSOptions> options_;  // of each group
};

}  // namespace binade::optim
