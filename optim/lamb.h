// LAMB (You et al., ICLR 2020). With Adam's moments in update t from 1:
//   r = (exp_avg / (1 - beta1^t)) / (sqrt(exp_avg_sq / (1 - beta2^t)) + eps) + weight_decay p;
//   p -= lr |p| / |r| r, with norms of the whole parameter; p -= lr r if one of them is 0.
#pragma once
#include <binade/optim/layerwise.h>

namespace binade::optim {

struct LAMBOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class LAMB : public LayerwiseOptimizer {
 public:
  using Options = LAMBOptions;
  LAMB(const ParameterList& parameters, const LAMBOptions& options = {});
  LAMB(std::vector<ParamGroup> groups, const LAMBOptions& options = {});

 private:
  void update(const Range& range) override;
  double beta2(size_t group) const override { return options_[group].betas[1]; }
  std::vector<LAMBOptions> options_;  // of each group
};

}  // namespace binade::optim
