// Grids of tiles of pairs by AMX.
#include <binade/kernels/contraction_grid.h>
#include <binade/kernels/contraction_tile_amx.h>
#include <binade/kernels/gemm_pairs.h>

namespace binade::kernels::BINADE_ISA {

void tile_grid_pairs(const TileGrid& g) {
  const TileRegisters registers;
  const TileSet<BfloatPair> tiles = amx_tile_set();
  Grid<BfloatPair>(g, tiles).run();
}

}  // namespace binade::kernels::BINADE_ISA
