// The vectors of an epilogue, packed as register tiles read them. Internal to kernels/.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/gemm/epilogue.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

namespace binade::kernels {

// Dense, in the compute dtype, with zeros to kMaxTileWidth beyond its end. An undefined vector has
// no data.
class PackedVector {
 public:
  explicit PackedVector(const View& vector);  // [columns], any stride
  const std::byte* data() const { return workspace_.as<std::byte>(); }

 private:
  Workspace workspace_;
};

// Bias and scale of an epilogue, alive while tiles run.
class PackedEpilogue {
 public:
  explicit PackedEpilogue(const Epilogue& epilogue);
  // Scale, bias, accumulate, relu and the operand. The rest is the caller's: where tiles round.
  const TileEpilogue& tile() const { return tile_; }

 private:
  PackedVector scale_, bias_;
  TileEpilogue tile_;
};

}  // namespace binade::kernels
