// Inner loops of the index kernels on the CPU.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

#include <cstddef>

namespace binade::kernels {

// y[c] += the sum over k of src[order[k] * stride + c], for `columns` columns, rounded once.
struct SumRows {
  DType dtype;
  const std::byte* src;
  const int64_t* order;
  int64_t count;    // of rows
  int64_t stride;   // elements between rows
  int64_t columns;  // adjacent in src and in y
  std::byte* y;
};
BINADE_ISA_KERNEL(sum_rows, const SumRows& a)

}  // namespace binade::kernels
