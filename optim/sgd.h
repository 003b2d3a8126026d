// Stochastic gradient descent with momentum. With gradient g and parameter p:
//   g += weight_decay p; buffer = momentum buffer + (1 - dampening) g, but g itself in the first
//   update; g = nesterov ? g + momentum buffer : buffer; p -= lr g.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool decay_norms_and_biases = true;
};

class Sgd : public Optimizer {
 public:
  using Options = SgdOptions;
  Sgd(const ParameterList& parameters, const SgdOptions& options);
  Sgd(std::vector<ParamGroup> groups, const SgdOptions& options);

 private:
  void update(const Range& range) override;
  SgdOptions options_;
};

}  // namespace binade::optim
