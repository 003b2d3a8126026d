// Row kernels of batch norm: `rows` rows of `channels` adjacent channels. Strides are elements
// between rows; C is the type of the compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/moments.h>

namespace binade::kernels {

// Per channel: the mean and the sum of squared deviations from it.
struct MomentRows {
  DType dtype;
  const void* x;
  int64_t x_stride, rows, channels;
  double* mean;
  double* deviations;
};

// The same of one channel, in double: for f16, bf16 and f32 whose squares exceed f32. x is the
// channel's first element.
Moments<double> moments_in_double(DType dtype, const void* x, int64_t stride, int64_t rows);

// Per channel: sum dz and sum dz (x - mean). dz is dy or, if the output y of relu is given, the
// gradient before relu; the pointer dz may be null.
struct GradientSumRows {
  DType dtype;
  const void* x;
  const void* dy;
  int64_t x_stride, dy_stride, rows, channels;
  const void* mean;  // C [channels]
  double* sum_dy;
  double* sum_dy_x;
  const void* y = nullptr;
  void* dz = nullptr;
  int64_t y_stride = 0, dz_stride = 0;
};

// y = (x - mean) scale + bias + residual, or relu of that. residual may be null.
struct NormalizeRows {
  DType dtype;
  const void* x;
  void* y;
  int64_t x_stride, y_stride, rows, channels;
  const void* mean;  // C [channels], like scale and bias
  const void* scale;
  const void* bias;
  const void* residual = nullptr;
  int64_t residual_stride = 0;
  bool relu = false;
};

// dx = scale (dz - dy_mean - (x - mean) slope), dz as above.
struct NormalizeRowsBackward {
  DType dtype;
  const void* x;
  const void* dy;
  void* dx;
  int64_t x_stride, dy_stride, dx_stride, rows, channels;
  const void* mean;  // C [channels], like the others
  const void* scale;
  const void* dy_mean;
  const void* slope;
  const void* y = nullptr;
  int64_t y_stride = 0;
};

BINADE_ISA_KERNEL(moment_rows, const MomentRows& a)
BINADE_ISA_KERNEL(gradient_sum_rows, const GradientSumRows& a)
BINADE_ISA_KERNEL(normalize_rows, const NormalizeRows& a)
BINADE_ISA_KERNEL(normalize_rows_backward, const NormalizeRowsBackward& a)

}  // namespace binade::kernels
