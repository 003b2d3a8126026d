// Adagrad (Duchi, Hazan and Singer, JMLR 2011). With gradient g and parameter p, in update t from
// 1:
//   g += weight_decay p; sum += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps).
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;  // of sum
  double eps = 1e-10;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class Adagrad : public Optimizer {
 public:
  using Options = AdagradOptions;
  Adagrad(const ParameterList& parameters, const AdagradOptions& options = {});
  Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options = {});

 private:
  void update(const Range& range) override;
  bool keeps_zeros() const override;
  std::vector<AdagradOptions> options_;  // of each group
};

}  // namespace binade::optim
