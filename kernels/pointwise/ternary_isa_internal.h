// The vectorised loops of kernels/pointwise/ternary.h: each runs over one tile
// (kernels/base/strided.h); operand 0 is the output. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>

namespace binade::kernels {

// y, condition, a, b; elements of `width` bytes
BINADE_ISA_KERNEL(where_tile, int64_t width, const StridedTile& tile)
// y, a, b, weight
BINADE_ISA_KERNEL(lerp_tile, DType dtype, const StridedTile& tile)
// y, a, b
BINADE_ISA_KERNEL(lerp_number_tile, DType dtype, double weight, const StridedTile& tile)

}  // namespace binade::kernels
