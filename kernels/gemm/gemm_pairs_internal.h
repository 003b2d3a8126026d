// Products of bf16 by vdpbf16ps, which takes two elements of k at a time: twice as many products
// per instruction as in f32. Products are exact and summed in f32, the even and the odd product of
// a pair together, so the order differs from kernels/gemm/gemm.h. Subnormal inputs and results
// count as 0. So they run in mode `fast` only (kernels/base/math_mode.h), and only if the processor
// has the instruction.
//
// AMX has tiles of 16 x 16 sums and of 16 pairs of k
// (kernels/gemm/contraction_tile_amx_internal.h), which are used instead where the processor and
// the system allow it (isa() is amx_bf16): the same products and roundings, but the even and the
// odd products of 32 elements of k are first summed separately.
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>

namespace binade::kernels {

// Pairs whose two elements come from two matrices [rows, columns] of bf16, for example the same
// pixel of two images. They are written in panels as in PanelPacking, or as one dense row.
struct PairJoin {
  const void* even = nullptr;
  const void* odd = nullptr;  // null: zeros
  int64_t row_stride = 0, column_stride = 1;
  int64_t rows = 1, columns = 0;
  bool in_panels = false;
  int64_t first_row = 0, total_rows = 1;  // of the panels
  void* target = nullptr;
};

// True if products of two operands of this dtype are computed in pairs, now and on this machine.
bool pairs_run(DType dtype);
// True if AMX computes them. A product then costs so little that it does not pay to save products.
bool amx_runs(DType dtype);

// gemm_block for bf16. All functions here require that pairs_run() is true.
BINADE_AVX512_BF16_KERNEL(gemm_block_pairs, const GemmBlock&)
BINADE_AMX_BF16_KERNEL(gemm_block_pairs, const GemmBlock&)
inline void gemm_block_pairs_best(const GemmBlock& g) {
  isa() == Isa::amx_bf16 ? amx_bf16::gemm_block_pairs(g) : avx512_bf16::gemm_block_pairs(g);
}
// gemm_pack for pairs of k, without AMX.
BINADE_AVX512_BF16_KERNEL(gemm_pack_pairs, const ProductPacking&)
// pack_panels and tile_grid for pairs; a, a_outer, a_row, a_step, offsets, length and b_step count
// pairs.
BINADE_AVX512_BF16_KERNEL(pack_panels_pairs, const PanelPacking&)
BINADE_AVX512_BF16_KERNEL(join_pairs, const PairJoin&)
BINADE_AVX512_BF16_KERNEL(tile_grid_pairs, const TileGrid&)
BINADE_AMX_BF16_KERNEL(tile_grid_pairs, const TileGrid&)
inline void tile_grid_pairs_best(const TileGrid& g) {
  isa() == Isa::amx_bf16 ? amx_bf16::tile_grid_pairs(g) : avx512_bf16::tile_grid_pairs(g);
}

}  // namespace binade::kernels
