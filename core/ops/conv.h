// Convolution of sequences and images, and its transpose.
#pragma once
#include <binade/core/ops/linear.h>
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/conv/conv2d.h>

namespace binade {

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
// x [N, C, L], weight [O, C / groups, K], bias [O] or undefined -> [N, O, Q], channels-last;
// Q = (L + 2 padding - dilation (K - 1) - 1) / stride + 1.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});

// Stride, padding and dilation, each {vertical, horizontal} or one number for both, and the number
// of groups: {.padding = 1}.
using Conv2dOptions = kernels::Conv2dGeometry;
// activation(x * weight + bias), relu as in linear(): x [N, C, H, W], weight [O, C / groups, R, S],
// bias [O] or undefined -> [N, O, P, Q], channels-last; P and Q as Q above.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {}, Activation activation = Activation::none);

// The gradient of a convolution with respect to its input, as an op. Several input sizes of the
// convolution give the same output size; output_padding, which is less than the stride or the
// dilation, chooses one of them.
struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1, output_padding = 0;
};
// x [N, C, L], weight [C, O / groups, K], bias [O] or undefined -> [N, O, Q], channels-last;
// Q = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});

struct ConvTranspose2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
  Pair output_padding = 0;
};
// x [N, C, H, W], weight [C, O / groups, R, S], bias [O] or undefined -> [N, O, P, Q],
// channels-last; P and Q as Q above.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

}  // namespace binade
