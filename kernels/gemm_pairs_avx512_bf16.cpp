// Blocks of matrix products of bf16 in pairs of k. A tile reads a as it lies where a row is whole
// pairs; b is packed, for the elements of a pair are one of each of two rows.
#include <binade/kernels/contraction_tile.h>
#include <binade/kernels/gemm_block.h>
#include <binade/kernels/gemm_pairs.h>
#include <binade/kernels/pair_packing.h>

namespace binade::kernels::BINADE_ISA {
namespace {

struct Pairs {
  using Element = BfloatPair;
  static constexpr int64_t kPerStep = 2;

  static bool a_can_stay(const GemmBlock& g) {
    return g.a_strides[1] == 1 && g.a_strides[0] % 2 == 0 && g.k % 2 == 0;
  }
  static bool b_can_stay(const GemmBlock&) { return false; }

  static void pack(const StepPacking& p, BfloatPair* target) { pack_pairs(p, target); }
  // target[column][step]
  static void pack_rows(const StepPacking& p, BfloatPair* target) {
    for (int64_t j = 0; j < p.columns; ++j) {
      const bfloat16* row = static_cast<const bfloat16*>(p.source) + j * p.column_stride;
      BfloatPair* to = target + j * p.step_width;
      for (int64_t k = 0; k < p.k; k += 2 * kPairs) {
        const int64_t left = p.k - k;
        _mm512_mask_storeu_epi32(to + k / 2, lanes((left + 1) / 2),
                                 _mm512_maskz_loadu_epi16(elements(left), row + k));
      }
    }
  }
};

}  // namespace

void gemm_block_pairs(const GemmBlock& g) {
  const TileSet<BfloatPair> tiles = make_tile_set<BfloatPair>(TileRows{});
  Block<Pairs>(g, tiles).run();
}

}  // namespace binade::kernels::BINADE_ISA
