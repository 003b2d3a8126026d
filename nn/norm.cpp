#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/norm.h>
#include <binade/nn/options_internal.h>

namespace binade::nn {
namespace {

constexpr ParameterTraits kNormParameter{.norm_or_bias = true, .keep_f32 = true};

void check_channels(const char* name, int64_t channels, double eps) {
  check_sizes(name, {{"channels", channels}});
  check(eps >= 0, name, ": got eps = ", eps, ", expected eps >= 0");
}

void check_shape(const char* name, const Dims& sizes, double eps) {
  bool positive = !sizes.empty();
  for (const int64_t size : sizes) {
    positive = positive && size > 0;
  }
  check(positive && eps >= 0, name, ": got normalized_shape = ", sizes, ", eps = ", eps,
        ", expected positive sizes and eps >= 0");
}

}  // namespace

BatchNorm::BatchNorm(const char* name, const BatchNorm2dOptions& options) : options_(options) {
  check_sizes(name, {{"channels", options.channels}});
  check(options.eps >= 0 && options.momentum >= 0 && options.momentum <= 1, name,
        ": got eps = ", options.eps, ", momentum = ", options.momentum,
        ", expected eps >= 0 and momentum in [0, 1]");
  weight = ones({options.channels});
  bias = zeros({options.channels});
  running_mean = zeros({options.channels});
  running_var = ones({options.channels});
  register_parameter("weight", weight, kNormParameter);
  register_parameter("bias", bias, kNormParameter);
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
}

Tensor BatchNorm::normalize(const Tensor& x, const Tensor& residual, bool relu) {
  check_place();
  check(x.defined(), "batch norm: got an undefined tensor");
  check_input(x);
  return batch_norm(x, weight, bias, running_mean, running_var, op_options(residual, relu));
}

BatchNormOptions BatchNorm::op_options(const Tensor& residual, bool relu) const {
  return {.training = is_training(),
          .momentum = options_.momentum,
          .eps = options_.eps,
          .group = group_,
          .residual = residual,
          .relu = relu};
}

bool BatchNorm::synchronize(RankGroup* group) {
  group_ = group;
  return true;
}

void BatchNorm1d::check_input(const Tensor& x) const {
  check(x.dim() == 2 || x.dim() == 3, "BatchNorm1d: got shape ", x.sizes(),
        ", expected [N, C] or [N, C, L]");
}

void BatchNorm2d::check_input(const Tensor& x) const {
  check(x.dim() == 4, "BatchNorm2d: got shape ", x.sizes(), ", expected [N, C, H, W]");
}

LayerNorm::LayerNorm(const LayerNormOptions& options) : options_(options) {
  check_shape("LayerNorm", options.normalized_shape, options.eps);
  if (options.affine) {
    weight = ones(options.normalized_shape);
    register_parameter("weight", weight, kNormParameter);
  }
  if (options.affine && options.bias) {
    bias = zeros(options.normalized_shape);
    register_parameter("bias", bias, kNormParameter);
  }
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, options_.normalized_shape, weight, bias, options_.eps);
}

RMSNorm::RMSNorm(const RMSNormOptions& options) : options_(options) {
  check_shape("RMSNorm", options.normalized_shape, options.eps.value_or(0));
  if (options.affine) {
    weight = ones(options.normalized_shape);
    register_parameter("weight", weight, kNormParameter);
  }
}

Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, options_.normalized_shape, weight, options_.eps);
}

GroupNorm::GroupNorm(const GroupNormOptions& options) : options_(options) {
  check_channels("GroupNorm", options.channels, options.eps);
  check_sizes("GroupNorm", {{"groups", options.groups}});
  check(options.channels % options.groups == 0, "GroupNorm: got groups = ", options.groups,
        ", channels = ", options.channels, ", expected groups that divide the channels");
  if (options.affine) {
    weight = ones({options.channels});
    bias = zeros({options.channels});
    register_parameter("weight", weight, kNormParameter);
    register_parameter("bias", bias, kNormParameter);
  }
}

Tensor GroupNorm::forward(const Tensor& x) {
  check(x.dim() >= 2 && x.size(1) == options_.channels, "GroupNorm: got shape ", x.sizes(),
        ", expected [N, ", options_.channels, ", ...]");
  return group_norm(x, options_.groups, weight, bias, options_.eps);
}

InstanceNorm::InstanceNorm(const char* name, const InstanceNorm2dOptions& options)
    : options_(options) {
  check_channels(name, options.channels, options.eps);
  if (options.affine) {
    weight = ones({options.channels});
    bias = zeros({options.channels});
    register_parameter("weight", weight, kNormParameter);
    register_parameter("bias", bias, kNormParameter);
  }
}

Tensor InstanceNorm::normalize(const char* name, int dim, const Tensor& x) const {
  check(x.dim() == dim && x.size(1) == options_.channels, name, ": got shape ", x.sizes(),
        ", expected ", dim, " dimensions, [N, ", options_.channels, ", ...]");
  return instance_norm(x, weight, bias, options_.eps);
}

}  // namespace binade::nn
