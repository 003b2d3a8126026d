// Blocks of matrix products of bf16 by AMX. Tiles read rows of a, in place where they are whole
// pairs, else packed; b is packed as for vectors.
#include <binade/kernels/gemm/contraction_tile_amx_internal.h>
#include <binade/kernels/gemm/gemm_block_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

struct Pairs : PairOperands {
  static constexpr int64_t kDepthUnit = kPairs;
  static constexpr bool kPacksRows = true;
  static void pack_rows(const StepPacking& p, BfloatPair* target) { pack_pair_rows(p, target); }
};

}  // namespace

void gemm_block_pairs(const GemmBlock& g) {
  const TileRegisters registers;
  const TileSet<BfloatPair> tiles = amx_tile_set();
  Block<Pairs>(g, tiles).run();
}

}  // namespace binade::kernels::BINADE_ISA
