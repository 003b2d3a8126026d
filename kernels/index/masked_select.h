// The elements that a mask chooses, in row-major order, and their way back. First the chosen ones
// are counted by chunks; whoever allocates the result reads the last count.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

inline constexpr int64_t kMaskChunk = 1024;
inline constexpr int64_t mask_offsets(int64_t elements) {  // the size of `offsets`
  return (elements + kMaskChunk - 1) / kMaskChunk + 1;
}

// offsets[i] = true elements of mask before element i * kMaskChunk; the last one counts all.
// mask: bool, any strides. offsets: contiguous i64 [mask_offsets(mask.numel)].
struct MaskCount {
  const View& mask;
  const View& offsets;
};
BINADE_KERNEL(mask_count, MaskCount, offsets)

// y = the elements of x where mask is true. x and mask: the same sizes, any strides; y: contiguous,
// as many as offsets says, of x's dtype, any.
struct MaskedSelect {
  const View& x;
  const View& mask;
  const View& offsets;
  const View& y;
};
BINADE_KERNEL(masked_select, MaskedSelect, y)

// y = the elements of x in turn where mask is true, 0 elsewhere. y and mask: the same sizes, any
// strides; x: one dimension, any stride.
struct MaskedSpread {
  const View& x;
  const View& mask;
  const View& offsets;
  const View& y;
};
BINADE_KERNEL(masked_spread, MaskedSpread, y)

}  // namespace binade::kernels
