// Selects the elements at the true positions of a mask, in row-major order, and writes them back;
// or finds these positions. The true elements are first counted by chunks; the caller allocates the
// result by the last count.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

inline constexpr int64_t kMaskChunk = 1024;
inline constexpr int64_t mask_offsets(int64_t elements) {  // the size of `offsets`
  return (elements + kMaskChunk - 1) / kMaskChunk + 1;
}

// offsets[i] = the number of true elements of mask before element i * kMaskChunk; the last one
// counts all of them.
// mask: bool, any strides. offsets: contiguous i64 [mask_offsets(mask.numel)].
struct MaskCount {
  const View& mask;
  const View& offsets;
};
BINADE_KERNEL(mask_count, MaskCount, offsets)

// y = the elements of x where mask is true. x and mask: the same sizes, any strides. y: contiguous,
// of x's dtype (any), with the number of elements that offsets says.
struct MaskedSelect {
  const View& x;
  const View& mask;
  const View& offsets;
  const View& y;
};
BINADE_KERNEL(masked_select, MaskedSelect, y)

// y[i] = the index of the i-th true element of mask in each dimension. y: contiguous i64 [the
// number that offsets says, mask.dim()].
struct MaskPositions {
  const View& mask;
  const View& offsets;
  const View& y;
};
BINADE_KERNEL(mask_positions, MaskPositions, y)

// Where mask is true, y gets the elements of x in turn; elsewhere 0. y and mask: the same sizes,
// any strides; x: one dimension, any stride.
struct MaskedSpread {
  const View& x;
  const View& mask;
  const View& offsets;
  const View& y;
};
BINADE_KERNEL(masked_spread, MaskedSpread, y)

}  // namespace binade::kernels
