#include <binade/core/ops.h>
#include <binade/nn/conv.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>

#include <algorithm>

namespace binade::nn {
namespace {

// The checked sizes that all convolutions share. A number stands for a pair of equal numbers.
struct Checked {
  const char* name;
  int64_t in, out, groups;
  Pair kernel, stride, padding, dilation;
};

void check_options(const Checked& c) {
  const auto& [name, in, out, groups, kernel, stride, padding, dilation] = c;
  check_sizes(name,
              {{"in", in}, {"out", out}, {"kernel", std::min(kernel.vertical, kernel.horizontal)}});
  check(groups > 0 && in % groups == 0 && out % groups == 0, name, ": got in = ", in,
        ", out = ", out, ", groups = ", groups, ", expected groups that divide in and out");
  check(stride.vertical > 0 && stride.horizontal > 0 && dilation.vertical > 0 &&
            dilation.horizontal > 0 && padding.vertical >= 0 && padding.horizontal >= 0,
        name,
        ": got a stride, dilation or padding that is too small, expected stride and dilation "
        ">= 1 and padding >= 0");
}

void check_output_padding(const char* name, int64_t extra, int64_t stride, int64_t dilation) {
  check(extra >= 0 && (extra < stride || extra < dilation), name, ": got output_padding = ", extra,
        ", stride = ", stride, ", dilation = ", dilation,
        ", expected output_padding >= 0, less than one of the others");
}

Tensor initial_weight(const Dims& sizes) {
  Tensor weight = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  init::default_weight(weight);
  return weight;
}

Tensor initial_bias(int64_t channels, const Dims& weight_sizes) {
  Tensor bias = empty({channels});
  init::default_bias(bias, weight_sizes);
  return bias;
}

constexpr ParameterTraits kWeight{.channels_last = true}, kBias{.norm_or_bias = true};

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options)
    : geometry_{.stride = options.stride,
                .padding = options.padding,
                .dilation = options.dilation,
                .groups = options.groups} {
  const auto& [in, out, kernel, stride, padding, dilation, groups, with_bias] = options;
  check_options({"Conv2d", in, out, groups, kernel, stride, padding, dilation});
  weight = initial_weight({out, in / groups, kernel.vertical, kernel.horizontal});
  register_parameter("weight", weight, kWeight);
  if (with_bias) {
    bias = initial_bias(out, weight.sizes());
    register_parameter("bias", bias, kBias);
  }
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias, geometry_); }

Conv1d::Conv1d(const Conv1dOptions& options)
    : geometry_{options.stride, options.padding, options.dilation, options.groups} {
  const auto& [in, out, kernel, stride, padding, dilation, groups, with_bias] = options;
  check_options({"Conv1d", in, out, groups, kernel, stride, padding, dilation});
  weight = initial_weight({out, in / groups, kernel});
  register_parameter("weight", weight, kWeight);
  if (with_bias) {
    bias = initial_bias(out, weight.sizes());
    register_parameter("bias", bias, kBias);
  }
}

Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight, bias, geometry_); }

ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& options)
    : geometry_{.stride = options.stride,
                .padding = options.padding,
                .dilation = options.dilation,
                .groups = options.groups,
                .output_padding = options.output_padding} {
  const auto& [in, out, kernel, stride, padding, extra, groups, with_bias, dilation] = options;
  check_options({"ConvTranspose2d", in, out, groups, kernel, stride, padding, dilation});
  check_output_padding("ConvTranspose2d", extra.vertical, stride.vertical, dilation.vertical);
  check_output_padding("ConvTranspose2d", extra.horizontal, stride.horizontal, dilation.horizontal);
  weight = initial_weight({in, out / groups, kernel.vertical, kernel.horizontal});
  register_parameter("weight", weight, kWeight);
  if (with_bias) {
    bias = initial_bias(out, weight.sizes());
    register_parameter("bias", bias, kBias);
  }
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias, geometry_);
}

ConvTranspose1d::ConvTranspose1d(const ConvTranspose1dOptions& options)
    : geometry_{options.stride, options.padding, options.dilation, options.groups,
                options.output_padding} {
  const auto& [in, out, kernel, stride, padding, extra, groups, with_bias, dilation] = options;
  check_options({"ConvTranspose1d", in, out, groups, kernel, stride, padding, dilation});
  check_output_padding("ConvTranspose1d", extra, stride, dilation);
  weight = initial_weight({in, out / groups, kernel});
  register_parameter("weight", weight, kWeight);
  if (with_bias) {
    bias = initial_bias(out, weight.sizes());
    register_parameter("bias", bias, kBias);
  }
}

Tensor ConvTranspose1d::forward(const Tensor& x) {
  return conv_transpose1d(x, weight, bias, geometry_);
}

}  // namespace binade::nn
