// The vectorised loops of kernels/copy/copy.h. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>

namespace binade::kernels {

// Operands y, x: converts a tile between two dtypes, or copies it if they are equal.
BINADE_ISA_KERNEL(convert_tile, DType from, DType to, const StridedTile& tile)

// A block whose output is contiguous along i and whose input is contiguous along j; strides in
// bytes.
struct TransposeBlock {
  static constexpr int64_t kSide = 64;
  std::byte* y;
  const std::byte* x;
  int64_t y_stride_j, x_stride_i;
  int64_t n_i, n_j;          // at most kSide
  bool nontemporal = false;  // a hint: the whole output is large (base/strided.h)
};
BINADE_ISA_KERNEL(transpose_block, DType from, DType to, const TransposeBlock& block)

}  // namespace binade::kernels
