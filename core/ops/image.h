// Pooling and resampling of images x [N, C, H, W], in x's memory order: results are channels-last
// if x is. Windows as columns, and pixels in place of channels: row-major results.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/conv/pair.h>
#include <binade/kernels/image/grid_sample.h>
#include <binade/kernels/image/interpolate.h>

namespace binade {

struct Pool2dOptions {
  static constexpr int64_t kSameAsKernel = INT64_MIN;

  Pair kernel = 1;
  Pair stride = kSameAsKernel;    // default: the kernel
  Pair padding = 0;               // at most half the kernel
  Pair dilation = 1;              // max pooling only; average pooling takes {1, 1}
  bool ceil_mode = false;         // a last window that reaches beyond the input counts
  bool count_include_pad = true;  // average pooling: the divisor counts the padding
};
// Largest element of each window; at a tie the first one gets the gradient. A NaN wins.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
// Mean of each window.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);
// Row p of the result averages rows floor(p H / height) to ceil((p + 1) H / height) of x, columns
// likewise.
Tensor adaptive_avg_pool2d(const Tensor& x, int64_t height, int64_t width);

using kernels::Interpolation;
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  // bilinear: the corner pixels stay where they are
};

// x [N, C, H, W] -> [N, C, height, width]; kernels/image/interpolate.h has the positions.
// Differentiable any number of times.
Tensor interpolate(const Tensor& x, int64_t height, int64_t width,
                   const InterpolateOptions& options = {});

using kernels::GridPadding;
struct GridSampleOptions {
  Interpolation mode = Interpolation::bilinear;
  GridPadding padding = GridPadding::zeros;  // what lies outside of x
  bool align_corners = false;                // -1 and 1 are centres of pixels, not edges
};
// x [N, C, H, W] at the positions grid [N, P, Q, 2], {horizontal, vertical} from -1 to 1: [N, C, P,
// Q]. kernels/image/grid_sample.h has the rules. Gradients of both, deterministic; no second ones.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
// The grid [N, height, width, 2] of an affine map: theta [N, 2, 3] times {horizontal, vertical, 1}
// of each pixel. Differentiable any number of times.
Tensor affine_grid(const Tensor& theta, int64_t height, int64_t width, bool align_corners = false);

// Pairs are {vertical, horizontal}.
struct UnfoldOptions {
  Pair kernel = 1;
  Pair dilation = 1;
  Pair padding = 0;
  Pair stride = 1;
};
// The windows of x, with zeros around it, as columns (im2col): [N, C, H, W] -> [N, C kh kw,
// windows], in row-major order of (c, i, j) and of the windows. [C, H, W] has no N. Any dtype.
// unfold and fold are differentiable any number of times.
Tensor unfold(const Tensor& x, const UnfoldOptions& options);
// The adjoint (col2im): columns [N, C kh kw, windows] -> [N, C, height, width], where elements of
// several windows add up. f16 and bf16 are summed in f32 and rounded once.
Tensor fold(const Tensor& x, int64_t height, int64_t width, const UnfoldOptions& options);

// [..., C r^2, H, W] -> [..., C, H r, W r], r = upscale_factor: r x r channels become a square of
// pixels. Any dtype.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
// The inverse: [..., C, H r, W r] -> [..., C r^2, H, W].
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);

}  // namespace binade
