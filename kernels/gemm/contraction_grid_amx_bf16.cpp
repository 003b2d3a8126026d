// Grids of tiles of pairs by AMX.
#include <binade/kernels/gemm/contraction_grid_internal.h>
#include <binade/kernels/gemm/contraction_tile_amx_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

namespace binade::kernels::BINADE_ISA {

void tile_grid_pairs(const TileGrid& g) {
  const TileRegisters registers;
  const TileSet<BfloatPair> tiles = amx_tile_set();
  Grid<BfloatPair>(g, tiles).run();
}

}  // namespace binade::kernels::BINADE_ISA
