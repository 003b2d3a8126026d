// Blocks of matrix products of bf16 in pairs of k. A tile reads a in place where a row is whole
// pairs; b is packed, since a pair holds elements of two rows.
#include <binade/kernels/gemm/contraction_tile_internal.h>
#include <binade/kernels/gemm/gemm_block_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/gemm_rows_internal.h>
#include <binade/kernels/gemm/pair_packing_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

struct Pairs : PairOperands {
  static constexpr int64_t kDepthUnit = 8;
  static constexpr bool kPacksRows = false;
  static void pack_rows(const StepPacking& p, BfloatPair* target) { copy_pair_rows(p, target); }
};

}  // namespace

void gemm_block_pairs(const GemmBlock& g) {
  const MatrixProduct& p = g.product;
  if (g.few_rows) {
    return run_few_rows<Pairs, bfloat16>(g, [&](BfloatPair* target) {
      pack_pair_rows({.source = p.a,
                      .dtype = p.dtype,
                      .k_stride = p.a_strides[1],
                      .column_stride = p.a_strides[0],
                      .k = p.k,
                      .columns = p.m,
                      .step_width = (p.k + 1) / 2},
                     target);
    });
  }
  const TileSet<BfloatPair> tiles = make_tile_set<BfloatPair>(TileRows{});
  Block<Pairs>(g, tiles).run();
}

void gemm_pack_pairs(const ProductPacking& p) {
  const TileSet<BfloatPair> tiles = make_tile_set<BfloatPair>(TileRows{});
  const GemmBlock block{.product = p.product};
  Block<Pairs>(block, tiles).pack_all(static_cast<BfloatPair*>(p.target));
}

}  // namespace binade::kernels::BINADE_ISA
