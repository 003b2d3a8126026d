#include <binade/core/create.h>
#include <binade/core/ops.h>
#include <binade/nn/norm.h>

namespace binade::nn {

BatchNorm2d::BatchNorm2d(const BatchNorm2dOptions& options) : options_(options) {
  check(options.channels > 0, "BatchNorm2d: got channels = ", options.channels,
        ", expected a positive number");
  check(options.eps >= 0 && options.momentum >= 0 && options.momentum <= 1,
        "BatchNorm2d: got eps = ", options.eps, ", momentum = ", options.momentum,
        ", expected eps >= 0 and momentum in [0, 1]");
  weight = ones({options.channels});
  bias = zeros({options.channels});
  running_mean = zeros({options.channels});
  running_var = ones({options.channels});
  register_parameter("weight", weight, {.norm_or_bias = true, .keep_f32 = true});
  register_parameter("bias", bias, {.norm_or_bias = true, .keep_f32 = true});
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  check(x.dim() == 4, "BatchNorm2d: got shape ", x.sizes(), ", expected [N, C, H, W]");
  return batch_norm(
      x, weight, bias, running_mean, running_var,
      {.training = is_training(), .momentum = options_.momentum, .eps = options_.eps});
}

}  // namespace binade::nn
