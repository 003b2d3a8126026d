// Pooling and resampling over the last two dimensions of [N, C, H, W].
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/conv/pool2d.h>

namespace binade {
namespace {

kernels::Pool2dGeometry geometry_of(const Pool2dOptions& options) {
  kernels::Pool2dGeometry geometry{.ceil_mode = options.ceil_mode,
                                   .count_include_pad = options.count_include_pad};
  for (int i = 0; i < 2; ++i) {
    const bool given = options.stride[i] != Pool2dOptions::kSameAsKernel;
    geometry.kernel[i] = options.kernel[i];
    geometry.stride[i] = given ? options.stride[i] : options.kernel[i];
    geometry.padding[i] = options.padding[i];
    geometry.dilation[i] = options.dilation[i];
  }
  return geometry;
}

void check_image(const char* op, const Tensor& x) {
  check(x.defined() && x.dim() == 4 && is_floating(x.dtype()), op, ": got ",
        x.defined() ? text("shape ", x.sizes(), " of dtype ", x.dtype()) : "an undefined tensor",
        ", expected [N, C, H, W] of a floating dtype");
}

Tensor image_like(const char* op, const Tensor& x, int64_t h, int64_t w) {
  const Dims sizes{x.size(0), x.size(1), h, w};
  element_count(sizes, op);  // throws before strides of huge sizes overflow
  const Dims strides = x.is_contiguous() && !x.is_channels_last() ? row_major_strides(sizes)
                                                                  : channels_last_strides(sizes);
  return empty_strided(sizes, strides, x.dtype(), x.device());
}

Tensor pooled(const char* op, const Tensor& x, const kernels::Pool2dGeometry& g) {
  int64_t out[2];
  for (int i = 0; i < 2; ++i) {
    out[i] = kernels::pool2d_output_size(x.size(2 + i), g, i, op);
  }
  return image_like(op, x, out[0], out[1]);
}

constexpr Op kInterpolate{"interpolate", OpClass::pointwise, true};

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
  return kInterpolate.record({dy}, dx, save(),
                             [sizes = dy.sizes(), options](const Tensor& ddx) -> Grads {
                               return {resample(ddx, sizes, options)};
                             });
}

Tensor resample(const Tensor& x, const Dims& sizes, const InterpolateOptions& options) {
  Tensor y = empty_strided(sizes, strides_like(x, sizes), x.dtype(), x.device());
  kernels::interpolate_forward(
      {.x = x, .y = y, .mode = options.mode, .align_corners = options.align_corners});
  return kInterpolate.record({x}, y, save(),
                             [sizes = x.sizes(), options](const Tensor& dy) -> Grads {
                               return {resample_back(dy, sizes, options)};
                             });
}

// Average pooling, a linear map. Its transpose is the gradient, whose own gradient is the map
// again.
struct Averaging {
  const Op* op;
  bool adaptive;
  kernels::Pool2dGeometry geometry;
};

void spread_average(const Averaging& a, const Tensor& dy, const Tensor& dx) {
  if (a.adaptive) {
    kernels::adaptive_avg_pool2d_backward({.dy = dy, .dx = dx});
  } else {
    kernels::avg_pool2d_backward({.dy = dy, .dx = dx, .geometry = a.geometry});
  }
}

Tensor average(const Averaging& a, const Tensor& x, Tensor y);

Tensor average_back(const Averaging& a, const Tensor& dy, Tensor dx) {
  spread_average(a, dy, dx);
  return a.op->record({dy}, dx, save(),
                      [a, h = dy.size(2), w = dy.size(3)](const Tensor& ddx) -> Grads {
                        return {average(a, ddx, image_like(a.op->name, ddx, h, w))};
                      });
}

// Writes the averages into y, new memory.
Tensor average(const Averaging& a, const Tensor& x, Tensor y) {
  if (a.adaptive) {
    kernels::adaptive_avg_pool2d_forward({.x = x, .y = y});
  } else {
    kernels::avg_pool2d_forward({.x = x, .y = y, .geometry = a.geometry});
  }
  return a.op->record(
      {x}, y, save(), [a, strides = x.strides()](const Tensor& dy, Needs needs) -> Grads {
        if (grad_enabled()) {
          const Dims& sizes = needs.sizes(0);
          return {average_back(a, dy, image_like(a.op->name, dy, sizes[2], sizes[3]))};
        }
        Tensor dx = needs.out_strided(0, strides);
        spread_average(a, dy, dx);
        return {dx};
      });
}

}  // namespace

Tensor max_pool2d(const Tensor& x_, const Pool2dOptions& options) {
  static constexpr Op kOp{"max_pool2d", OpClass::pointwise};
  auto [x] = kOp.enter(x_);
  check_image("max_pool2d", x);
  const kernels::Pool2dGeometry geometry = geometry_of(options);
  Tensor y = pooled(kOp.name, x, geometry);
  // The place of the maximum in its window is saved instead of x and y: one byte per output unless
  // windows are large.
  Tensor index = grad_enabled() && x.requires_grad()
                     ? empty_like(y, kernels::pool2d_index_dtype(geometry))
                     : Tensor();
  kernels::max_pool2d_forward({.x = x, .y = y, .index = index, .geometry = geometry});
  return kOp.record(
      {x}, y, save(when(index.defined(), index)),
      [geometry, strides = x.strides()](const Tensor& dy, Needs needs,
                                        const Tensor& index) -> Grads {
        Tensor dx = needs.out_strided(0, strides);
        kernels::max_pool2d_backward({.dy = dy, .index = index, .dx = dx, .geometry = geometry});
        return {dx};
      });
}

Tensor avg_pool2d(const Tensor& x_, const Pool2dOptions& options) {
  static constexpr Op kOp{"avg_pool2d", OpClass::reduction, true};
  auto [x] = kOp.enter(x_);
  check_image("avg_pool2d", x);
  const Averaging averaging{&kOp, false, geometry_of(options)};
  return average(averaging, x, pooled(kOp.name, x, averaging.geometry));
}

Tensor adaptive_avg_pool2d(const Tensor& x_, int64_t height, int64_t width) {
  static constexpr Op kOp{"adaptive_avg_pool2d", OpClass::reduction, true};
  auto [x] = kOp.enter(x_);
  check_image("adaptive_avg_pool2d", x);
  check(height >= 1 && width >= 1, "adaptive_avg_pool2d: got an output of ", height, " x ", width,
        ", expected at least 1 x 1");
  check(x.size(2) >= 1 && x.size(3) >= 1, "adaptive_avg_pool2d: got shape ", x.sizes(),
        ", expected a height and width of at least 1");
  return average({&kOp, true, {}}, x, image_like(kOp.name, x, height, width));
}

Tensor interpolate(const Tensor& x_, int64_t height, int64_t width,
                   const InterpolateOptions& options) {
  auto [x] = kInterpolate.enter(x_);
  check_floating(kInterpolate.name, x);
  check(x.dim() == 4, "interpolate: got shape ", x.sizes(), ", expected [N, C, H, W]");
  check(height >= 1 && width >= 1, "interpolate: got a result of ", height, " x ", width,
        ", expected at least 1 x 1");
  const Dims sizes{x.size(0), x.size(1), height, width};
  element_count(sizes, kInterpolate.name);
  return resample(x, sizes, options);
}

}  // namespace binade
