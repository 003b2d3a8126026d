// Row kernels of cosine similarity: `rows` rows of `cols` adjacent elements. C is the type of the
// compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct CosineRows {
  DType dtype;
  const void* x[2];
  int64_t stride[2], rows, cols;
  double eps;
  void* y;           // C [rows]
  void* inverse[2];  // C [rows]
  const void* dy;    // C [rows]; null in the forward
  void* dx[2];       // null if not wanted
  int64_t dx_stride[2];
};
BINADE_ISA_KERNEL(cosine_rows_forward, const CosineRows& a)
BINADE_ISA_KERNEL(cosine_rows_backward, const CosineRows& a)

}  // namespace binade::kernels
