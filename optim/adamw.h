// Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019), optionally AMSGrad.
//   Adam: g += weight_decay p. AdamW: p *= 1 - lr weight_decay.
//   exp_avg = beta1 exp_avg + (1 - beta1) g; exp_avg_sq = beta2 exp_avg_sq + (1 - beta2) g^2;
//   p -= lr (exp_avg / (1 - beta1^t)) / (sqrt(exp_avg_sq / (1 - beta2^t)) + eps), t from 1.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct AdamWOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

struct AdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class AdamW : public Optimizer {
 public:
  using Options = AdamWOptions;
  AdamW(const ParameterList& parameters, const AdamWOptions& options = {});
  AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options = {});

 protected:
  AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options, bool decoupled);

 private:
  void update(const Range& range) override;
  bool keeps_zeros() const override;
  double beta2(size_t group) const override { return options_[group].betas[1]; }
  std::vector<AdamWOptions> options_;  // of each group
  bool decoupled_;
};

class Adam : public AdamW {
 public:
  using Options = AdamOptions;
  Adam(const ParameterList& parameters, const AdamOptions& options = {});
  Adam(std::vector<ParamGroup> groups, const AdamOptions& options = {});
};

}  // namespace binade::optim
