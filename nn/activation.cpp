#include <binade/core/ops.h>
#include <binade/nn/activation.h>

namespace binade::nn {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

Tensor LeakyReLU::forward(const Tensor& x) { return leaky_relu(x, options_.negative_slope); }

Tensor ReLU6::forward(const Tensor& x) { return relu6(x); }
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Tensor SiLU::forward(const Tensor& x) { return silu(x); }
Tensor Hardswish::forward(const Tensor& x) { return hardswish(x); }
Tensor Mish::forward(const Tensor& x) { return mish(x); }
Tensor LogSigmoid::forward(const Tensor& x) { return log_sigmoid(x); }
Tensor SELU::forward(const Tensor& x) { return selu(x); }
Tensor Softsign::forward(const Tensor& x) { return softsign(x); }
Tensor Hardsigmoid::forward(const Tensor& x) { return hardsigmoid(x); }

GELU::GELU(const GELUOptions& options) : options_(options) {
  check(options.approximate == "none" || options.approximate == "tanh", "GELU: got approximate = '",
        options.approximate, "', expected 'none' or 'tanh'");
}

Tensor GELU::forward(const Tensor& x) { return gelu(x, options_.approximate); }

Tensor ELU::forward(const Tensor& x) { return elu(x, options_.alpha); }

CELU::CELU(const CELUOptions& options) : options_(options) {
  check(options.alpha != 0, "CELU: got alpha = 0, expected a number other than 0");
}

Tensor CELU::forward(const Tensor& x) { return celu(x, options_.alpha); }

Tensor Softplus::forward(const Tensor& x) { return softplus(x, options_.beta, options_.threshold); }

Hardtanh::Hardtanh(const HardtanhOptions& options) : options_(options) {
  check(options.min_val < options.max_val, "Hardtanh: got min_val ", options.min_val,
        " and max_val ", options.max_val, ", expected min_val < max_val");
}

Tensor Hardtanh::forward(const Tensor& x) {
  return hardtanh(x, options_.min_val, options_.max_val);
}

Dropout::Dropout(const DropoutOptions& options) : options_(options) {
  check(options.p >= 0 && options.p <= 1, "Dropout: got p = ", options.p, ", expected 0 to 1");
}

Tensor Dropout::forward(const Tensor& x) {
  return is_training() && options_.p > 0 ? dropout(x, options_.p) : x;
}

Tensor Flatten::forward(const Tensor& x) {
  check(x.dim() >= 1, "Flatten: got a scalar, expected [N, ...]");
  return x.dim() == 1 ? reshape(x, {x.size(0), 1}) : flatten(x, 1);
}

}  // namespace binade::nn
