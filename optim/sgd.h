// Stochastic gradient descent with momentum. With gradient g and parameter p:
//   g += weight_decay p; buffer = momentum buffer + (1 - dampening) g, but g itself in the first
//   update; g = nesterov ? g + momentum buffer : buffer; p -= lr g.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool decay_norms_and_biases = true;
  bool maximize = false;  // step along the gradient, not against it
};

class SGD : public Optimizer {
 public:
  using Options = SGDOptions;
  SGD(const ParameterList& parameters, const SGDOptions& options);
  SGD(std::vector<ParamGroup> groups, const SGDOptions& options);

 private:
  void update(const Range& range) override;
  std::vector<SGDOptions> options_;  // of each group
};

}  // namespace binade::optim
