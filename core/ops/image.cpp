// Pooling, resampling, grids of positions and windows over the last two dimensions of [N, C, H, W].
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/conv/pool2d.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>

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

namespace {

// The coordinates of `count` pixels from edge to edge, or with align_corners from the first to the
// last centre, of which a single one lies at 0.
Tensor coordinates(int64_t count, bool align_corners, const Tensor& like) {
  const auto n = static_cast<double>(count);
  const double first = count == 1 ? 0 : align_corners ? -1 : -1 + 1 / n;
  return linspace(first, -first, count, compute_dtype(like.dtype()), like.device());
}

}  // namespace

Tensor grid_sample(const Tensor& x_, const Tensor& grid_, const GridSampleOptions& options) {
  static constexpr Op kOp{"grid_sample", OpClass::pointwise};
  auto [x, grid] = kOp.enter(x_, grid_);
  check_floating(kOp.name, x, grid);
  check_one_device(kOp.name, {&x, &grid});
  check(x.dim() == 4 && x.size(2) >= 1 && x.size(3) >= 1, "grid_sample: got shape ", x.sizes(),
        ", expected [N, C, H, W] with a height and width of at least 1");
  check(grid.dim() == 4 && grid.size(0) == x.size(0) && grid.size(3) == 2,
        "grid_sample: got a grid of shape ", grid.sizes(), " for x of shape ", x.sizes(),
        ", expected [", x.size(0), ", P, Q, 2]");
  const Dims sizes{x.size(0), x.size(1), grid.size(1), grid.size(2)};
  element_count(sizes, kOp.name);
  const bool channels_last = x.is_channels_last() && !x.is_contiguous();
  Tensor y =
      empty_strided(sizes, channels_last ? channels_last_strides(sizes) : row_major_strides(sizes),
                    x.dtype(), x.device());
  const kernels::GridRule rule{options.mode, options.padding, options.align_corners};
  kernels::grid_sample_forward({.x = x, .grid = grid, .y = y, .rule = rule});
  return kOp.record(
      {x, grid}, y, save(x, grid),
      [rule](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& grid) -> Grads {
        Tensor dx = needs.out_like(0, x), dgrid = needs.out(1);
        kernels::grid_sample_backward(
            {.x = x, .grid = grid, .dy = dy, .dx = dx, .dgrid = dgrid, .rule = rule});
        return {dx, dgrid};
      });
}

Tensor affine_grid(const Tensor& theta, int64_t height, int64_t width, bool align_corners) {
  check_floating("affine_grid", theta);
  check(theta.dim() == 3 && theta.size(1) == 2 && theta.size(2) == 3,
        "affine_grid: got theta of shape ", theta.sizes(), ", expected [N, 2, 3]");
  check(height >= 1 && width >= 1, "affine_grid: got a grid of ", height, " x ", width,
        ", expected at least 1 x 1");
  static_cast<void>(element_count({theta.size(0), height, width, 2}, "affine_grid"));
  const PrecisionScope no_policy(Precision::full());
  // Small numbers times numbers up to 1, computed in the compute dtype and rounded once.
  const Tensor map = cast(theta, compute_dtype(theta.dtype()));
  const auto column = [&](int i) { return reshape(select(map, 2, i), {theta.size(0), 1, 1, 2}); };
  const Tensor x = reshape(coordinates(width, align_corners, theta), {1, 1, width, 1});
  const Tensor y = reshape(coordinates(height, align_corners, theta), {1, height, 1, 1});
  const Tensor lines = add(mul(column(1), y), column(2));  // [N, height, 1, 2]
  return cast(add(mul(column(0), x), lines), theta.dtype());
}

namespace {

constexpr Op kUnfold{"unfold", OpClass::movement, true};
constexpr Op kFold{"fold", OpClass::reduction, true};

// Images [n, c, h, w] and their windows [n, c, kh, kw, rows, columns].
struct Windows {
  UnfoldOptions options;
  Dims image, sizes;

  Windows(const char* op, const Dims& image_, const UnfoldOptions& given)
      : options(given), image(image_) {
    int64_t count[2];
    for (int i = 0; i < 2; ++i) {
      const int64_t kernel = given.kernel[i], dilation = given.dilation[i],
                    padding = given.padding[i], stride = given.stride[i];
      constexpr int64_t kMost = int64_t{1} << 30;
      check(kernel >= 1 && dilation >= 1 && padding >= 0 && stride >= 1 && kernel <= kMost &&
                dilation <= kMost && padding <= kMost && stride <= kMost,
            op, ": got kernel ", kernel, ", dilation ", dilation, ", padding ", padding,
            " and stride ", stride, ", expected at least 1, 1, 0 and 1, at most 2^30");
      const int64_t size = image[2 + i] + 2 * padding, window = dilation * (kernel - 1) + 1;
      check(image[2 + i] >= 0 && window <= size, op, ": got a window of ", window,
            " for images of size ", image, " with padding ", padding,
            ", expected one that fits; choose a smaller kernel or more padding");
      count[i] = (size - window) / stride + 1;
    }
    sizes = {image[0], image[1], given.kernel[0], given.kernel[1], count[0], count[1]};
    element_count(sizes, op);
  }
  Dims padded() const {
    return {image[0], image[1], image[2] + 2 * options.padding[0],
            image[3] + 2 * options.padding[1]};
  }
  Dims columns() const { return {sizes[0], sizes[1] * sizes[2] * sizes[3], sizes[4] * sizes[5]}; }
  // The images within the memory of the padded ones.
  Tensor inside(const Tensor& padded) const {
    const Dims& s = padded.strides();
    return make_view(padded, image, s, options.padding[0] * s[2] + options.padding[1] * s[3]);
  }
  // The windows in the memory of the padded images; all of them, or element (i, j) of each.
  Tensor of(const Tensor& padded) const {
    const Dims& s = padded.strides();
    return make_view(padded, sizes,
                     {s[0], s[1], s[2] * options.dilation[0], s[3] * options.dilation[1],
                      s[2] * options.stride[0], s[3] * options.stride[1]});
  }
  // The columns as windows.
  Tensor split(const Tensor& columns) const {
    const Dims& s = columns.strides();
    return make_view(
        columns, sizes,
        {s[0], s[1] * sizes[2] * sizes[3], s[1] * sizes[3], s[1], s[2] * sizes[5], s[2]});
  }
  static Tensor element(const Tensor& windows, int64_t i, int64_t j) {
    const Dims &n = windows.sizes(), &s = windows.strides();
    return make_view(windows, {n[0], n[1], n[4], n[5]}, {s[0], s[1], s[4], s[5]},
                     i * s[2] + j * s[3]);
  }
};

Tensor folded(const Tensor& x, const Windows& w);

Tensor unfolded(const Tensor& x, const Windows& w) {
  Tensor padded = x.detach();
  if (w.padded() != w.image) {
    padded = zeros(w.padded(), x.dtype(), x.device());
    kernels::copy({.x = x, .y = w.inside(padded)});
  }
  Tensor y = empty(w.columns(), x.dtype(), x.device());
  kernels::copy({.x = w.of(padded), .y = w.split(y)});
  return kUnfold.record({x}, y, save(), [w](const Tensor& dy) -> Grads { return {folded(dy, w)}; });
}

Tensor folded(const Tensor& x, const Windows& w) {
  const DType wide = compute_dtype(x.dtype());
  const Tensor padded = zeros(w.padded(), wide, x.device());
  const Tensor windows = w.of(padded), terms = w.split(cast(x.detach(), wide));
  for (int64_t i = 0; i < w.sizes[2]; ++i) {
    for (int64_t j = 0; j < w.sizes[3]; ++j) {
      const Tensor sum = Windows::element(windows, i, j);
      kernels::binary_forward(
          {.op = kernels::Binary::add, .a = sum, .b = Windows::element(terms, i, j), .y = sum});
    }
  }
  Tensor y = empty(w.image, x.dtype(), x.device());
  kernels::copy({.x = w.inside(padded), .y = y});
  return kFold.record({x}, y, save(), [w](const Tensor& dy) -> Grads { return {unfolded(dy, w)}; });
}

// [.., C, H, W] with r x r channels or pixels apart, and back in another order.
Tensor shuffled(const Tensor& x, const Dims& apart, const Dims& order, const Dims& last) {
  Dims sizes = x.sizes();
  for (int i = 0; i < 3; ++i) {
    sizes[x.dim() - 3 + i] = last[i];
  }
  return reshape(permute(reshape(x, apart), order), sizes);
}

void check_factor(const char* op, const Tensor& x, int64_t r) {
  check_defined(op, x);
  check(r >= 1 && r <= (int64_t{1} << 20), op, ": got the factor ", r, ", expected 1 to 2^20");
  check(x.dim() >= 3, op, ": got shape ", x.sizes(), ", expected [..., C, H, W]");
}

int64_t leading_count(const Tensor& x) {
  return element_count(Dims(std::span(x.sizes().begin(), static_cast<size_t>(x.dim() - 3))));
}

}  // namespace

Tensor unfold(const Tensor& x_, const UnfoldOptions& options) {
  auto [x] = kUnfold.enter(x_);
  check_defined(kUnfold.name, x);
  check(x.dim() == 3 || x.dim() == 4, "unfold: got shape ", x.sizes(),
        ", expected [N, C, H, W] or [C, H, W]");
  const Tensor images = x.dim() == 3 ? unsqueeze(x, 0) : x;
  const Tensor y = unfolded(images, Windows(kUnfold.name, images.sizes(), options));
  return x.dim() == 3 ? squeeze(y, 0) : y;
}

Tensor fold(const Tensor& x_, int64_t height, int64_t width, const UnfoldOptions& options) {
  auto [x] = kFold.enter(x_);
  check_floating(kFold.name, x);
  check(x.dim() == 2 || x.dim() == 3, "fold: got shape ", x.sizes(),
        ", expected [N, C kh kw, windows] or [C kh kw, windows]");
  check(height >= 1 && width >= 1, "fold: got a result of ", height, " x ", width,
        ", expected at least 1 x 1");
  const Tensor columns = x.dim() == 2 ? unsqueeze(x, 0) : x;
  element_count({1, 1, height, width}, kFold.name);
  const Windows one(kFold.name, {1, 1, height, width}, options);
  const int64_t of_channel = one.columns()[1], windows = one.columns()[2];
  check(columns.size(1) % of_channel == 0 && columns.size(2) == windows, "fold: got shape ",
        x.sizes(), ", expected [..., a multiple of ", of_channel, ", ", windows,
        "] for these images and windows");
  const Windows all(kFold.name, {columns.size(0), columns.size(1) / of_channel, height, width},
                    options);
  const Tensor y = folded(columns, all);
  return x.dim() == 2 ? squeeze(y, 0) : y;
}

Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor) {
  const int64_t r = upscale_factor;
  check_factor("pixel_shuffle", x, r);
  const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
  element_count({h, r}, "pixel_shuffle");  // the products fit, also if the image is empty
  element_count({w, r}, "pixel_shuffle");
  check(c % (r * r) == 0, "pixel_shuffle: got ", c, " channels of shape ", x.sizes(),
        " for the factor ", r, ", expected a multiple of ", r * r);
  return shuffled(x, {leading_count(x), c / (r * r), r, r, h, w}, {0, 1, 4, 2, 5, 3},
                  {c / (r * r), h * r, w * r});
}

Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor) {
  const int64_t r = downscale_factor;
  check_factor("pixel_unshuffle", x, r);
  const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
  element_count({c, r, r}, "pixel_unshuffle");
  check(h % r == 0 && w % r == 0, "pixel_unshuffle: got a height and width of ", h, " and ", w,
        " for the factor ", r, ", expected multiples of it; use pad()");
  return shuffled(x, {leading_count(x), c, h / r, r, w / r, r}, {0, 1, 3, 5, 2, 4},
                  {c * r * r, h / r, w / r});
}

}  // namespace binade
