// Max, average and adaptive average pooling over the last two dimensions.
// x, dx: [N, C, H, W]; y, dy: [N, C, P, Q]; any strides and any floating dtype, fast for
// channels-last. Gradients are gathered, one input element at a time, so overlapping windows
// accumulate in the compute type and in a fixed order.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/conv/pair.h>

namespace binade::kernels {

// Padding must be at most half the kernel, so that without dilation no window is entirely in the
// padding.
struct Pool2dGeometry {
  Pair kernel = 1;
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;              // max pooling only; average pooling takes {1, 1}
  bool ceil_mode = false;         // a last window that reaches beyond the input counts
  bool count_include_pad = true;  // average pooling: the divisor counts the padding
};

// Number of windows along dimension `axis` of `in` elements; with ceil_mode a last window that
// would start in the padding after the input is left out, and one window larger than the input may
// remain. Throws, in the name of `op`, if the geometry gives no window.
int64_t pool2d_output_size(int64_t in, const Pool2dGeometry& g, int axis,
                           const char* op = "pool2d");

// The dtype of the index of max pooling: u8 where the positions in a window fit, else i32.
constexpr DType pool2d_index_dtype(const Pool2dGeometry& g) {
  return g.kernel[0] * g.kernel[1] <= 256 ? DType::u8 : DType::i32;
}

// Largest value of each window: padding is minus infinity, the first of equal values is chosen, and
// a NaN wins. A window that holds only padding (possible with dilation) gives minus infinity.
// index: pool2d_index_dtype with y's sizes and strides, the position i * kernel[1] + j inside the
// window; kNoView if it is not wanted.
struct MaxPool2dForward {
  const View& x;
  const View& y;
  const View& index;
  Pool2dGeometry geometry;
};
BINADE_KERNEL(max_pool2d_forward, MaxPool2dForward, y)

// dx[element] = sum of dy over the windows whose maximum the element is. Writes all of dx.
struct MaxPool2dBackward {
  const View& dy;
  const View& index;
  const View& dx;
  Pool2dGeometry geometry;
};
BINADE_KERNEL(max_pool2d_backward, MaxPool2dBackward, dx)

// Mean of each window. The divisor counts the elements of the window inside the padded input, or
// with count_include_pad = false inside the input.
struct AvgPool2dForward {
  const View& x;
  const View& y;
  Pool2dGeometry geometry;
};
BINADE_KERNEL(avg_pool2d_forward, AvgPool2dForward, y)

struct AvgPool2dBackward {
  const View& dy;
  const View& dx;
  Pool2dGeometry geometry;
};
BINADE_KERNEL(avg_pool2d_backward, AvgPool2dBackward, dx)

// Output row p averages input rows floor(p H / P) to ceil((p + 1) H / P), columns likewise.
struct AdaptiveAvgPool2dForward {
  const View& x;
  const View& y;
};
BINADE_KERNEL(adaptive_avg_pool2d_forward, AdaptiveAvgPool2dForward, y)

struct AdaptiveAvgPool2dBackward {
  const View& dy;
  const View& dx;
};
BINADE_KERNEL(adaptive_avg_pool2d_backward, AdaptiveAvgPool2dBackward, dx)

}  // namespace binade::kernels
