// 2D convolution (cross-correlation), forward and both backward passes. Sizes are logical NCHW and
// OIHW, memory order is whatever the strides say; channels-last activations and OHWI weights are
// the fast layout, others are converted through a workspace. f16 and bf16 are computed in float and
// rounded once. The order of additions depends on the shape only, never on the threads.
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

struct Conv2dGeometry {  // each pair is {vertical, horizontal}
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1};
  int64_t groups = 1;
};

// All views of a call have one floating dtype, and sizes must agree:
// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, likewise Q. Errors are thrown.

struct Conv2dForward {         // y = activation(x * w + bias)
  const View& x;               // [N, C, H, W]
  const View& w;               // [O, C / groups, R, S]
  const View& y;               // [N, O, P, Q]
  const View& bias = kNoView;  // [O]
  Conv2dGeometry geometry = {};
  Activation activation = Activation::none;
};
BINADE_KERNEL(conv2d_forward, Conv2dForward, y)

// What a convolution in f32 on the CPU may do to its sums while they are in registers:
// y = activation((x * w) scale + bias + residual). y is in channels-last order.
struct Conv2dFinish {
  const View& scale = kNoView;     // [O]
  const View& residual = kNoView;  // [N, O, P, Q] with the strides of y
};
namespace cpu {
void conv2d_finished(const Conv2dForward& a, const Conv2dFinish& finish);
}

// Also the forward of a transposed convolution, for which the bias is.
struct Conv2dBackwardData {
  const View& dy;  // [N, O, P, Q]
  const View& w;   // [O, C / groups, R, S]
  const View& dx;  // [N, C, H, W], overwritten
  Conv2dGeometry geometry = {};
  const View& bias = kNoView;  // [C], added to dx
};
BINADE_KERNEL(conv2d_backward_data, Conv2dBackwardData, dx)

struct Conv2dBackwardWeight {
  const View& x;   // [N, C, H, W]
  const View& dy;  // [N, O, P, Q]
  const View& dw;  // [O, C / groups, R, S], overwritten
  Conv2dGeometry geometry = {};
};
BINADE_KERNEL(conv2d_backward_weight, Conv2dBackwardWeight, dw)

}  // namespace binade::kernels
