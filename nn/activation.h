// Layers without parameters: activations, dropout, flatten.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

struct LeakyReLUOptions {
  double negative_slope = 0.01;
};

class LeakyReLU : public Module {
 public:
  using Options = LeakyReLUOptions;
  explicit LeakyReLU(const LeakyReLUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  LeakyReLUOptions options_;
};

struct DropoutOptions {
  double p = 0.5;  // probability that an element becomes 0
};

// The identity in evaluation.
class Dropout : public Module {
 public:
  using Options = DropoutOptions;
  explicit Dropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  DropoutOptions options_;
};

// [N, ...] -> [N, product of the others] in logical order, whatever the memory order.
class Flatten : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

}  // namespace binade::nn
