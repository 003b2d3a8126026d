// Row kernels of batch norm: `rows` rows of `channels` adjacent channels. Strides count elements
// between rows; C is the stat dtype's type.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// Per channel: the mean and the sum of squared deviations from it.
struct MomentRows {
  DType dtype;
  const void* x;
  int64_t x_stride, rows, channels;
  double* mean;
  double* deviations;
};

// Per channel: sum dy and sum dy (x - mean).
struct GradientSumRows {
  DType dtype;
  const void* x;
  const void* dy;
  int64_t x_stride, dy_stride, rows, channels;
  const void* mean;  // C [channels]
  double* sum_dy;
  double* sum_dy_x;
};

// y = (x - mean) scale + bias.
struct NormalizeRows {
  DType dtype;
  const void* x;
  void* y;
  int64_t x_stride, y_stride, rows, channels;
  const void* mean;  // C [channels], as scale and bias
  const void* scale;
  const void* bias;
};

// dx = scale (dy - dy_mean - (x - mean) slope).
struct NormalizeRowsBackward {
  DType dtype;
  const void* x;
  const void* dy;
  void* dx;
  int64_t x_stride, dy_stride, dx_stride, rows, channels;
  const void* mean;  // C [channels], as the others
  const void* scale;
  const void* dy_mean;
  const void* slope;
};

BINADE_ISA_KERNEL(moment_rows, const MomentRows& a)
BINADE_ISA_KERNEL(gradient_sum_rows, const GradientSumRows& a)
BINADE_ISA_KERNEL(normalize_rows, const NormalizeRows& a)
BINADE_ISA_KERNEL(normalize_rows_backward, const NormalizeRowsBackward& a)

}  // namespace binade::kernels
