// The vectors of an epilogue, packed in the form that register tiles read. Internal to kernels/.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/epilogue.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

namespace binade::kernels {

// Packs bias and scale without gaps in the compute dtype, followed by kMaxTileWidth zeros. The
// packed vectors live as long as this object.
class PackedEpilogue {
 public:
  explicit PackedEpilogue(const Epilogue& epilogue);
  // Scale, bias, accumulate, relu and the operand. The caller sets the rest: where tiles round.
  const TileEpilogue& tile() const { return tile_; }

 private:
  Workspace workspace_;
  TileEpilogue tile_;
};

}  // namespace binade::kernels
