#include <binade/core/ops/interpolate.h>

#include <binade/core/autograd/op.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>

namespace binade {
namespace {

constexpr Op kOp{"interpolate", OpClass::pointwise, true};

Dims strides_like(const Tensor& x, const Dims& sizes) {
  return x.is_channels_last() && !x.is_contiguous() ? channels_last_strides(sizes)
                                                    : row_major_strides(sizes);
}

Tensor resample(const Tensor& x, const Dims& sizes, const InterpolateOptions& options);

// The transpose of the linear map `resample`: from the gradient of its result to the gradient of x.
Tensor resample_back(const Tensor& dy, const Dims& sizes, const InterpolateOptions& options) {
  Tensor dx = empty_strided(sizes, strides_like(dy, sizes), dy.dtype(), dy.device());
  kernels::interpolate_backward(
      {.dy = dy, .dx = dx, .mode = options.mode, .align_corners = options.align_corners});
  return kOp.record({dy}, dx, save(), [sizes = dy.sizes(), options](const Tensor& ddx) -> Grads {
    return {resample(ddx, sizes, options)};
  });
}

Tensor resample(const Tensor& x, const Dims& sizes, const InterpolateOptions& options) {
  Tensor y = empty_strided(sizes, strides_like(x, sizes), x.dtype(), x.device());
  kernels::interpolate_forward(
      {.x = x, .y = y, .mode = options.mode, .align_corners = options.align_corners});
  return kOp.record({x}, y, save(), [sizes = x.sizes(), options](const Tensor& dy) -> Grads {
    return {resample_back(dy, sizes, options)};
  });
}

}  // namespace

Tensor interpolate(const Tensor& x_, int64_t height, int64_t width,
                   const InterpolateOptions& options) {
  auto [x] = kOp.enter(x_);
  check_floating(kOp.name, x);
  check(x.dim() == 4, "interpolate: got shape ", x.sizes(), ", expected [N, C, H, W]");
  check(height >= 1 && width >= 1, "interpolate: got a result of ", height, " x ", width,
        ", expected at least 1 x 1");
  const Dims sizes{x.size(0), x.size(1), height, width};
  element_count(sizes, kOp.name);
  return resample(x, sizes, options);
}

}  // namespace binade
