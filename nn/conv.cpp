#include <binade/core/ops.h>
#include <binade/nn/conv.h>
#include <binade/nn/init.h>

namespace binade::nn {

Conv2d::Conv2d(const Conv2dOptions& options)
    : geometry_{.stride = {options.stride.vertical, options.stride.horizontal},
                .padding = {options.padding.vertical, options.padding.horizontal},
                .dilation = {options.dilation.vertical, options.dilation.horizontal},
                .groups = options.groups} {
  const auto& [in, out, kernel, stride, padding, dilation, groups, with_bias] = options;
  check(in > 0 && out > 0 && kernel.vertical > 0 && kernel.horizontal > 0, "Conv2d: got in = ", in,
        ", out = ", out, ", kernel = ", kernel.vertical, "x", kernel.horizontal,
        ", expected positive numbers");
  check(groups > 0 && in % groups == 0 && out % groups == 0, "Conv2d: got in = ", in,
        ", out = ", out, ", groups = ", groups, ", expected groups that divide in and out");
  check(stride.vertical > 0 && stride.horizontal > 0 && dilation.vertical > 0 &&
            dilation.horizontal > 0 && padding.vertical >= 0 && padding.horizontal >= 0,
        "Conv2d: got a stride, dilation or padding that is too small, expected stride and dilation "
        ">= 1 and padding >= 0");
  const Dims sizes = {out, in / groups, kernel.vertical, kernel.horizontal};
  weight = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  init::default_weight(weight);
  register_parameter("weight", weight, {.channels_last = true});
  if (with_bias) {
    bias = empty({out});
    init::default_bias(bias, sizes);
    register_parameter("bias", bias, {.norm_or_bias = true});
  }
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias, geometry_); }

}  // namespace binade::nn
