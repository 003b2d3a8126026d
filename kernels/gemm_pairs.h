// Products of bf16 by vdpbf16ps: two elements of k at a time, twice as many products in an
// instruction as f32 has. Products are exact and summed in f32, even ones and odd ones of k
// together, in another order than that of kernels/gemm.h, and subnormal numbers, in and out, count
// as 0. So they run in mode `fast` only (kernels/math_mode.h), and where the processor has the
// instruction. Internal to kernels/.
#pragma once
#include <binade/kernels/contraction.h>

namespace binade::kernels {

// Whether products of two operands of this dtype are computed in pairs, now and on this machine.
bool pairs_run(DType dtype);

// gemm_block of bf16. REQUIRES: pairs_run was true.
BINADE_AVX512_BF16_KERNEL(gemm_block_pairs, const GemmBlock&)
// The same of pack_panels and tile_grid, where a, a_outer, a_row, a_step, offsets, length and
// b_step count pairs.
BINADE_AVX512_BF16_KERNEL(pack_panels_pairs, const PanelPacking&)
BINADE_AVX512_BF16_KERNEL(tile_grid_pairs, const TileGrid&)

}  // namespace binade::kernels
