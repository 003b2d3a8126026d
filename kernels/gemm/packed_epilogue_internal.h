// The vectors of an epilogue, packed as register tiles read them. Internal to kernels/.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/epilogue.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

namespace binade::kernels {

// Packs bias and scale, which live as long as it: dense, in the compute dtype, with zeros to
// kMaxTileWidth beyond their end.
class PackedEpilogue {
 public:
  explicit PackedEpilogue(const Epilogue& epilogue);
  // Scale, bias, accumulate, relu and the operand. The rest is the caller's: where tiles round.
  const TileEpilogue& tile() const { return tile_; }

 private:
  Workspace workspace_;
  TileEpilogue tile_;
};

}  // namespace binade::kernels
