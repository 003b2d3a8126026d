// RAdam: Adam with a rectified learning rate in the first steps (Liu et al., ICLR 2020). With
// gradient g, parameter p and step t from 1:
//   g += weight_decay p, or decoupled p *= 1 - lr weight_decay; exp_avg and exp_avg_sq as in Adam;
//   r = 2 / (1 - beta2) - 1; r_t = r - 2 t beta2^t / (1 - beta2^t); m = exp_avg / (1 - beta1^t);
//   if r_t > 5: p -= lr m sqrt((r_t - 4) (r_t - 2) r / ((r - 4) (r - 2) r_t)) sqrt(1 - beta2^t)
//                    / (sqrt(exp_avg_sq) + eps), else p -= lr m.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct RAdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  // as AdamW
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class RAdam : public Optimizer {
 public:
  using Options = RAdamOptions;
  RAdam(const ParameterList& parameters, const RAdamOptions& options = {});
  RAdam(std::vector<ParamGroup> groups, const RAdamOptions& options = {});

 private:
  void update(const Range& range) override;
  bool keeps_zeros() const override;
  double beta2(size_t group) const override { return options_[group].betas[1]; }
  std::vector<RAdamOptions> options_;  // of each group
};

}  // namespace binade::optim
