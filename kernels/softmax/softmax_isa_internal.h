// Row kernels of softmax: `rows` rows of `cols` adjacent elements, one row after the other.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct SoftmaxRows {
  DType dtype;
  const void* x;
  void* y;
  int64_t x_stride, y_stride;
  int64_t rows, cols;
  bool log;
  void* scratch;     // [cols] in the compute type: exponentials between two passes
  bool nontemporal;  // y is large (base/strided.h, kNontemporalBytes) and not x
};

struct SoftmaxRowsBackward {
  DType dtype;
  const void* y;
  const void* dy;
  void* dx;
  int64_t y_stride, dy_stride, dx_stride;
  int64_t rows, cols;
  bool log;
  bool nontemporal;  // for dx, which is neither y nor dy
};

BINADE_ISA_KERNEL(softmax_rows, const SoftmaxRows& a)
BINADE_ISA_KERNEL(softmax_rows_backward, const SoftmaxRowsBackward& a)

}  // namespace binade::kernels
