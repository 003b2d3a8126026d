// NAdam: Adam with Nesterov's momentum (Dozat, 2016). With gradient g, parameter p and step t from
// 1:
//   g += weight_decay p, or decoupled p *= 1 - lr weight_decay;
//   exp_avg and exp_avg_sq as in Adam; mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);
//   p -= lr ((1 - mu_t) / (1 - mu_1 ... mu_t) g + mu_{t+1} / (1 - mu_1 ... mu_{t+1}) exp_avg)
//        / (sqrt(exp_avg_sq / (1 - beta2^t)) + eps).
// The products of mu are those of the present beta1 and are no state, also if a schedule changes
// it.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct NAdamOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // as AdamW
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class NAdam : public Optimizer {
 public:
  using Options = NAdamOptions;
  NAdam(const ParameterList& parameters, const NAdamOptions& options = {});
  NAdam(std::vector<ParamGroup> groups, const NAdamOptions& options = {});

 private:
  void update(const Range& range) override;
  bool keeps_zeros() const override;
  double beta2(size_t group) const override { return options_[group].betas[1]; }
  std::vector<NAdamOptions> options_;  // of each group
};

}  // namespace binade::optim
