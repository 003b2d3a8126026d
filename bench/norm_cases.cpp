// Cases of the normalisation kernels.
#include <bench/kernel_cases.h>
#include <binade/kernels/norm/batch_norm.h>
#include <binade/kernels/norm/group_norm.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/random/random.h>

namespace binade::bench {
namespace {

struct NormOperands {
  const View &x, &weight, &bias, &mean, &rstd, &y;
};

NormOperands norm_operands(Operands& o, int64_t rows, int64_t cols, DType dtype) {
  const DType stat = compute_dtype(dtype);
  return {o.channels_last(o.random(dtype, {rows, cols, 1, 1})),
          o.random(stat, {cols}),
          o.random(stat, {cols}),
          o.zeros(stat, {cols}),
          o.random(stat, {cols}),
          o.channels_last(o.empty(dtype, {rows, cols, 1, 1}))};
}

Prepared batch_norm_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const NormOperands v = norm_operands(*o, rows, cols, dtype);
  return {o,
          [v] {
            kernels::batch_norm_forward({.x = v.x,
                                         .weight = v.weight,
                                         .bias = v.bias,
                                         .y = v.y,
                                         .mean = v.mean,
                                         .rstd = v.rstd,
                                         .eps = 1e-5});
          },
          bytes_of(v.x, v.y, v.weight, v.bias, v.mean, v.rstd), 0};
}

Prepared batch_norm_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const NormOperands v = norm_operands(*o, rows, cols, dtype);
  const View& dx = o->channels_last(o->empty(dtype, {rows, cols, 1, 1}));
  const View &dw = o->empty(v.mean.dtype, {cols}), &db = o->empty(v.mean.dtype, {cols});
  kernels::fill_normal({.y = v.y, .seed = 9, .offset = 0});  // used as dy
  return {o,
          [v, &dx, &dw, &db] {
            kernels::batch_norm_backward({.x = v.x,
                                          .dy = v.y,
                                          .weight = v.weight,
                                          .mean = v.mean,
                                          .rstd = v.rstd,
                                          .dx = dx,
                                          .dweight = dw,
                                          .dbias = db});
          },
          bytes_of(v.x, v.y, dx, v.weight, v.mean, v.rstd, dw, db), 0};
}

// Layer norm, or RMS norm if kCentred is false.
template <bool kCentred>
Prepared row_norm_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols}),
             &weight = o->random(stat, {cols}), &bias = o->random(stat, {cols}),
             &mean = o->empty(stat, {rows}), &rstd = o->empty(stat, {rows});
  return {o,
          [&x, &y, &weight, &bias, &mean, &rstd] {
            kernels::layer_norm_forward({.x = x,
                                         .weight = weight,
                                         .bias = kCentred ? bias : kNoView,
                                         .y = y,
                                         .mean = kCentred ? mean : kNoView,
                                         .rstd = rstd,
                                         .eps = 1e-5});
          },
          bytes_of(x, y, weight, rstd) + (kCentred ? bytes_of(bias, mean) : 0), 0};
}

template <bool kCentred>
Prepared row_norm_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View &x = o->random(dtype, {rows, cols}), &dy = o->random(dtype, {rows, cols}),
             &dx = o->empty(dtype, {rows, cols}), &weight = o->random(stat, {cols}),
             &mean = o->zeros(stat, {rows}), &rstd = o->random(stat, {rows}),
             &dw = o->empty(stat, {cols}), &db = o->empty(stat, {cols});
  return {o,
          [&x, &dy, &dx, &weight, &mean, &rstd, &dw, &db] {
            kernels::layer_norm_backward({.x = x,
                                          .dy = dy,
                                          .weight = weight,
                                          .mean = kCentred ? mean : kNoView,
                                          .rstd = rstd,
                                          .dx = dx,
                                          .dweight = dw,
                                          .dbias = kCentred ? db : kNoView});
          },
          bytes_of(x, dy, dx, weight, rstd, dw) + (kCentred ? bytes_of(mean, db) : 0), 0};
}

// Uses groups of 8 channels, or one group if 8 does not divide the channels.
struct GroupNormOperands {
  const View &x, &y, &weight, &bias, &mean, &rstd;
};

GroupNormOperands group_norm_operands(Operands& o, int64_t images, int64_t channels, DType dtype) {
  const DType stat = compute_dtype(dtype);
  const Dims sizes{images, channels, kImageSide, kImageSide};
  const int64_t groups = channels % 8 == 0 ? channels / 8 : 1;
  return {o.channels_last(o.random(dtype, sizes)),
          o.channels_last(o.random(dtype, sizes)),
          o.random(stat, {channels}),
          o.random(stat, {channels}),
          o.zeros(stat, {images, groups}),
          o.random(stat, {images, groups})};
}

Prepared group_norm_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const GroupNormOperands v = group_norm_operands(*o, rows, cols, dtype);
  return {o,
          [v] {
            kernels::group_norm_forward({.x = v.x,
                                         .weight = v.weight,
                                         .bias = v.bias,
                                         .y = v.y,
                                         .mean = v.mean,
                                         .rstd = v.rstd,
                                         .eps = 1e-5});
          },
          bytes_of(v.x, v.y, v.weight, v.bias, v.mean, v.rstd), 0};
}

Prepared group_norm_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const GroupNormOperands v = group_norm_operands(*o, rows, cols, dtype);
  const View& dx = o->channels_last(o->empty(dtype, v.x.sizes));
  const View &dw = o->empty(v.mean.dtype, {cols}), &db = o->empty(v.mean.dtype, {cols});
  return {o,
          [v, &dx, &dw, &db] {
            kernels::group_norm_backward({.x = v.x,
                                          .dy = v.y,
                                          .weight = v.weight,
                                          .mean = v.mean,
                                          .rstd = v.rstd,
                                          .dx = dx,
                                          .dweight = dw,
                                          .dbias = db});
          },
          bytes_of(v.x, v.y, dx, v.weight, v.mean, v.rstd, dw, db), 0};
}

}  // namespace

std::vector<KernelCase> norm_cases() {
  return {
      {"layer_norm_forward", kMatrix, row_norm_forward<true>},
      {"layer_norm_backward", kMatrix, row_norm_backward<true>},
      {"rms_norm_forward", kMatrix, row_norm_forward<false>},
      {"rms_norm_backward", kMatrix, row_norm_backward<false>},
      {"group_norm_forward", kImages, group_norm_forward},
      {"group_norm_backward", kImages, group_norm_backward},
      {"batch_norm_forward", "rows positions, cols channels", batch_norm_forward},
      {"batch_norm_backward", "rows positions, cols channels", batch_norm_backward},
  };
}

}  // namespace binade::bench
