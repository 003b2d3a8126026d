// The vectorised loops of kernels/pointwise/pointwise.h: each runs one operation over one tile
// (kernels/base/strided.h); operand 0 is the output. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::kernels {

// y, x
BINADE_ISA_KERNEL(unary_forward_tile, Unary op, DType dtype, double alpha, double beta,
                  const StridedTile& tile)
// y, x, slope: f32, dense
BINADE_ISA_KERNEL(unary_slope_tile, Unary op, const StridedTile& tile)
// dx, saved, dy
BINADE_ISA_KERNEL(unary_backward_tile, Unary op, DType dtype, double alpha, double beta,
                  const StridedTile& tile)
// y, a, b
BINADE_ISA_KERNEL(binary_forward_tile, Binary op, DType dtype, const StridedTile& tile)
// da (which 0) or db (which 1), a, b, dy
BINADE_ISA_KERNEL(binary_backward_tile, Binary op, int which, DType dtype, const StridedTile& tile)
// y, a, b
BINADE_ISA_KERNEL(compare_tile, Compare op, DType dtype, const StridedTile& tile)

}  // namespace binade::kernels
