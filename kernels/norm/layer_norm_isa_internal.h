// Row kernels of layer norm: `rows` rows of `cols` adjacent elements. Strides are elements between
// rows; C is the type of the compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct LayerNormRows {
  DType dtype;
  const void* x;
  void* y;
  int64_t x_stride, y_stride, rows, cols;
  const void* weight;  // C [cols] or null, like bias
  const void* bias;
  void* mean;  // C [rows], like rstd; null: 0 instead
  void* rstd;
  double eps;
  bool nontemporal;  // y is large (base/strided.h, kNontemporalBytes) and not x
};

struct LayerNormRowsBackward {
  DType dtype;
  const void* x;
  const void* dy;
  void* dx;  // null if not wanted
  int64_t x_stride, dy_stride, dx_stride, rows, cols;
  const void* weight;  // C [cols] or null
  const void* mean;    // C [rows], like rstd; null: 0 instead
  const void* rstd;
  void* dweight;  // C [cols], sums over these rows; null if not wanted; so is dbias
  void* dbias;
  bool nontemporal;  // for dx, which is neither x nor dy
};

BINADE_ISA_KERNEL(layer_norm_rows, const LayerNormRows& a)
BINADE_ISA_KERNEL(layer_norm_rows_backward, const LayerNormRowsBackward& a)

}  // namespace binade::kernels
