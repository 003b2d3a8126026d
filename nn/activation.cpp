#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/options_internal.h>

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
  check_place();
  return is_training() && options_.p > 0 ? dropout(x, options_.p) : x;
}

Dropout2d::Dropout2d(const DropoutOptions& options) : options_(options) {
  check(options.p >= 0 && options.p <= 1, "Dropout2d: got p = ", options.p, ", expected 0 to 1");
}

Tensor Dropout2d::forward(const Tensor& x) {
  check_place();
  check(x.dim() >= 3, "Dropout2d: got shape ", x.sizes(), ", expected [N, C, ...]");
  if (!is_training() || options_.p == 0) {
    return x;
  }
  Dims channels = x.sizes();
  for (int i = 2; i < x.dim(); ++i) {
    channels[i] = 1;
  }
  return x * dropout(ones(channels, x.dtype(), x.device()), options_.p);
}

Tensor Softmax::forward(const Tensor& x) { return softmax(x, options_.dim); }
Tensor LogSoftmax::forward(const Tensor& x) { return log_softmax(x, options_.dim); }

Tensor GLU::forward(const Tensor& x) {
  const int dim = options_.dim < 0 ? options_.dim + x.dim() : options_.dim;
  check(dim >= 0 && dim < x.dim() && x.size(dim) % 2 == 0, "GLU: got shape ", x.sizes(),
        " and dim = ", options_.dim, ", expected an even size there");
  const std::vector<Tensor> halves = split(x, x.size(options_.dim) / 2, options_.dim);
  return halves[0] * sigmoid(halves[1]);
}

PReLU::PReLU(const PReLUOptions& options) {
  check_sizes("PReLU", {{"channels", options.channels}});
  weight = full({options.channels}, options.init);
  register_parameter("weight", weight);
}

Tensor PReLU::forward(const Tensor& x) {
  const int64_t channels = weight.size(0);
  check(channels == 1 || (x.dim() >= 2 && x.size(1) == channels), "PReLU: got shape ", x.sizes(),
        ", expected [N, ", channels, ", ...]");
  Dims sizes{channels};
  for (int i = 2; i < x.dim(); ++i) {
    sizes.push_back(1);
  }
  const Tensor slopes = channels == 1 ? weight : reshape(weight, sizes);
  return where(x > 0, x, x * slopes);
}

Tensor Flatten::forward(const Tensor& x) {
  check(x.dim() >= 1, "Flatten: got a scalar, expected [N, ...]");
  return x.dim() == 1 ? reshape(x, {x.size(0), 1}) : flatten(x, 1);
}

}  // namespace binade::nn
