// Products with k = 1, such as the weight gradient of one sample: y = a b^T is one multiplication
// and one store for each element, so nothing is packed. Internal to kernels/gemm.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// y[i][j] = a[i] b[j], or y[i][j] += a[i] b[j]. The bits are those of a register tile.
struct OuterProduct {
  DType dtype = DType::f32;  // or f64
  const void* a = nullptr;   // [m], a_stride elements apart
  const void* b = nullptr;   // [n], adjacent
  void* y = nullptr;         // rows of adjacent elements
  int64_t a_stride = 1, y_row = 0, m = 0, n = 0;
  bool accumulate = false;
};
BINADE_ISA_KERNEL(gemm_outer, const OuterProduct& p)

}  // namespace binade::kernels
