// 2D convolution (cross-correlation), forward and both backward passes. Sizes are logical NCHW and
// OIHW, the strides give the memory order. Channels-last activations and OHWI weights are the fast
// layout; other layouts are converted through a workspace. f16 and bf16 are computed in float and
// rounded once. The order of additions depends on the shape only, never on the threads.
#pragma once
#include <binade/kernels/base/provided_kernel.h>
#include <binade/kernels/conv/pair.h>
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

struct Conv2dGeometry {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
};

// All views of a call have one floating dtype, and sizes must agree:
// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, likewise Q. Errors are thrown.

struct Conv2dForward {  // y = epilogue(x * w)
  const View& x;        // [N, C, H, W]
  const View& w;        // [O, C / groups, R, S]
  const View& y;        // [N, O, P, Q]; with a scale or residual in channels-last order
  Conv2dGeometry geometry = {};
  Epilogue epilogue = {};            // without accumulate; none or relu
  WeightPacking* packing = nullptr;  // of w; used on the CPU
};
BINADE_PROVIDED_KERNEL(conv2d_forward, Conv2dForward, y)

// It is also the forward pass of a transposed convolution, so it takes a bias.
struct Conv2dBackwardData {
  const View& dy;  // [N, O, P, Q]
  const View& w;   // [O, C / groups, R, S]
  const View& dx;  // [N, C, H, W], overwritten
  Conv2dGeometry geometry = {};
  const View& bias = kNoView;  // [C], added to dx
};
BINADE_PROVIDED_KERNEL(conv2d_backward_data, Conv2dBackwardData, dx)

struct Conv2dBackwardWeight {
  const View& x;   // [N, C, H, W]
  const View& dy;  // [N, O, P, Q]
  const View& dw;  // [O, C / groups, R, S], overwritten
  Conv2dGeometry geometry = {};
};
BINADE_PROVIDED_KERNEL(conv2d_backward_weight, Conv2dBackwardWeight, dw)

}  // namespace binade::kernels
