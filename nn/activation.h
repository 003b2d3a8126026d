// Activations, dropout, flatten: layers without parameters, except PReLU.
#pragma once
#include <binade/nn/module.h>

#include <string>

namespace binade::nn {

class ReLU : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

struct LeakyReLUOptions {
  double negative_slope = 0.01;
};

class LeakyReLU : public Module {
 public:
  using Options = LeakyReLUOptions;
  explicit LeakyReLU(const LeakyReLUOptions& options = {}) : options_(options) {}
  LeakyReLU(Module& parent, std::string_view name, const LeakyReLUOptions& options = {})
      : LeakyReLU(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  LeakyReLUOptions options_;
};

class ReLU6 : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Sigmoid : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Tanh : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class SiLU : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Hardswish : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Mish : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class LogSigmoid : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class SELU : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Softsign : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

class Hardsigmoid : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

struct GELUOptions {
  std::string approximate = "none";  // or "tanh"
};

class GELU : public Module {
 public:
  using Options = GELUOptions;
  explicit GELU(const GELUOptions& options = {});
  GELU(Module& parent, std::string_view name, const GELUOptions& options = {}) : GELU(options) {
    join(parent, name);
  }
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
  ELU(Module& parent, std::string_view name, const ELUOptions& options = {}) : ELU(options) {
    join(parent, name);
  }
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
  CELU(Module& parent, std::string_view name, const CELUOptions& options = {}) : CELU(options) {
    join(parent, name);
  }
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
  Softplus(Module& parent, std::string_view name, const SoftplusOptions& options = {})
      : Softplus(options) {
    join(parent, name);
  }
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
  Hardtanh(Module& parent, std::string_view name, const HardtanhOptions& options = {})
      : Hardtanh(options) {
    join(parent, name);
  }
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
  Dropout(Module& parent, std::string_view name, const DropoutOptions& options = {})
      : Dropout(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  bool depends_on_mode() const override { return options_.p > 0; }

  DropoutOptions options_;
};

// Sets whole channels of x [N, C, ...] to 0 with probability p, and divides the others by 1 - p. In
// evaluation it is the identity.
class Dropout2d : public Module {
 public:
  using Options = DropoutOptions;
  explicit Dropout2d(const DropoutOptions& options = {});
  Dropout2d(Module& parent, std::string_view name, const DropoutOptions& options = {})
      : Dropout2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  bool depends_on_mode() const override { return options_.p > 0; }

  DropoutOptions options_;
};

struct DimOptions {
  int dim = -1;
};

class Softmax : public Module {
 public:
  using Options = DimOptions;
  explicit Softmax(const DimOptions& options = {}) : options_(options) {}
  Softmax(Module& parent, std::string_view name, const DimOptions& options = {})
      : Softmax(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  DimOptions options_;
};

class LogSoftmax : public Module {
 public:
  using Options = DimOptions;
  explicit LogSoftmax(const DimOptions& options = {}) : options_(options) {}
  LogSoftmax(Module& parent, std::string_view name, const DimOptions& options = {})
      : LogSoftmax(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  DimOptions options_;
};

// a sigmoid(b), where a and b are the halves of x along a dimension.
class GLU : public Module {
 public:
  using Options = DimOptions;
  explicit GLU(const DimOptions& options = {}) : options_(options) {}
  GLU(Module& parent, std::string_view name, const DimOptions& options = {}) : GLU(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  DimOptions options_;
};

struct PReLUOptions {
  int64_t channels = 1;  // 1: one slope for all; else the size of dimension 1
  double init = 0.25;
};

// max(x, 0) + weight min(x, 0).
class PReLU : public Module {
 public:
  using Options = PReLUOptions;
  explicit PReLU(const PReLUOptions& options = {});
  PReLU(Module& parent, std::string_view name, const PReLUOptions& options = {}) : PReLU(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [channels]
};

class Identity : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override { return x; }
};

// [N, ...] -> [N, product of the other sizes] in logical order, for every memory order.
class Flatten : public Module {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) override;
};

}  // namespace binade::nn
