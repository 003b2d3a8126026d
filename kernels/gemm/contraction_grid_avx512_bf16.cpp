// Panels and grids of tiles of pairs.
#include <binade/kernels/gemm/contraction_grid_internal.h>
#include <binade/kernels/gemm/contraction_tile_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/pair_packing_internal.h>

namespace binade::kernels::BINADE_ISA {

void pack_panels_pairs(const PanelPacking& p) {
  constexpr int64_t kWidth = 2 * kLanes<BfloatPair>;
  const bfloat16* source = static_cast<const bfloat16*>(p.source);
  BfloatPair* panel = static_cast<BfloatPair*>(p.target);
  const int64_t steps = (p.total_rows + 1) / 2;
  for (int64_t j = 0; j < p.columns; j += kWidth, panel += steps * kWidth) {
    const int64_t width = p.columns - j > kWidth / 2 ? kWidth : kWidth / 2;
    pack_pairs({.source = source + j * p.column_stride,
                .dtype = p.from,
                .k_stride = p.row_stride,
                .column_stride = p.column_stride,
                .k = p.rows,
                .columns = smaller(p.columns - j, width),
                .step_width = width},
               panel + p.first_row / 2 * width);
  }
}

void join_pairs(const PairJoin& p) {
  constexpr int64_t kWidth = 2 * kLanes<BfloatPair>;
  const int64_t step = p.in_panels ? kWidth : p.columns;
  BfloatPair* panel = static_cast<BfloatPair*>(p.target);
  for (int64_t j = 0; j < p.columns; j += step, panel += p.total_rows * step) {
    const bool narrow = p.in_panels && p.columns - j <= kWidth / 2;
    const int64_t width = narrow ? kWidth / 2 : step;
    for (int64_t i = 0; i < p.rows; ++i) {
      const int64_t at = i * p.row_stride + j * p.column_stride;
      const bfloat16* even = static_cast<const bfloat16*>(p.even) + at;
      const bfloat16* odd = p.odd ? static_cast<const bfloat16*>(p.odd) + at : nullptr;
      join_rows(even, odd, p.column_stride, smaller(p.columns - j, width), width,
                panel + (p.first_row + i) * width);
    }
  }
}

void tile_grid_pairs(const TileGrid& g) {
  const TileSet<BfloatPair> tiles = make_tile_set<BfloatPair>(TileRows{});
  Grid<BfloatPair>(g, tiles).run();
}

}  // namespace binade::kernels::BINADE_ISA
