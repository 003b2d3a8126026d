#include <binade/core/ops.h>
#include <binade/nn/activation.h>

namespace binade::nn {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

Tensor LeakyReLU::forward(const Tensor& x) { return leaky_relu(x, options_.negative_slope); }

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
