// Layers without parameters: activations, dropout, flatten.
#pragma once
#include <binade/nn/module.h>

#include <string>

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

class ReLU6 : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class SiLU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Hardswish : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Mish : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class LogSigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class SELU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Softsign : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class Hardsigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

struct GELUOptions {
  std::string approximate = "none";  // or "tanh"
};

class GELU : public Module {
 public:
  using Options = GELUOptions;
  explicit GELU(const GELUOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  GELUOptions options_;
};

struct ELUOptions {
  double alpha = 1;
};

class ELU : public Module {
 public:
  using Options = ELUOptions;
  explicit ELU(const ELUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  ELUOptions options_;
};

struct CELUOptions {
  double alpha = 1;
};

class CELU : public Module {
 public:
  using Options = CELUOptions;
  explicit CELU(const CELUOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  CELUOptions options_;
};

struct SoftplusOptions {
  double beta = 1, threshold = 20;
};

class Softplus : public Module {
 public:
  using Options = SoftplusOptions;
  explicit Softplus(const SoftplusOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  SoftplusOptions options_;
};

struct HardtanhOptions {
  double min_val = -1, max_val = 1;
};

class Hardtanh : public Module {
 public:
  using Options = HardtanhOptions;
  explicit Hardtanh(const HardtanhOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  HardtanhOptions options_;
};

struct DropoutOptions {
  double p = 0.5;  // probability that an element becomes 0
};

// In evaluation it is the identity.
class Dropout : public Module {
 public:
  using Options = DropoutOptions;
  explicit Dropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  bool depends_on_mode() const override { return options_.p > 0; }

  DropoutOptions options_;
};

// [N, ...] -> [N, product of the other sizes] in logical order, for every memory order.
class Flatten : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

}  // namespace binade::nn
