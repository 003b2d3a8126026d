// The vectorised bodies behind kernels/reduce.h. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/view.h>
#include <binade/kernels/reduce.h>

namespace binade::kernels {

// One partial result for each of up to kColumns outputs. The reduced dimensions, innermost first,
// make a sequence of rows; [begin, end) of it is reduced, in leaves combined pairwise.
struct ReduceTask {
  static constexpr int64_t kColumns = 256;
  const std::byte* x;
  int64_t columns, column_stride;  // strides in bytes
  int dims;
  int64_t size[kMaxDims], stride[kMaxDims];
  int64_t begin, end;  // rows: indices over dimensions 1 ..; if `across`, over all dimensions
  // Vectorised across the columns (the reduced dimensions are outside), or along dimension 0.
  bool across;
  void* partial;  // columns values of the accumulator type
};
BINADE_ISA_KERNEL(reduce_rows, Reduce op, DType dtype, const ReduceTask& task)

// partial[0][i] = all of partial[chunk][i] combined pairwise; `columns` values apart.
BINADE_ISA_KERNEL(reduce_partials, Reduce op, DType dtype, void* partial, int64_t chunks,
                  int64_t columns)

}  // namespace binade::kernels
