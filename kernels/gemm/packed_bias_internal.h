// A bias as register tiles read it (kernels/gemm/contraction_internal.h). Internal to kernels/.
#pragma once
#include <binade/kernels/base/view.h>
#include <binade/kernels/base/workspace.h>

namespace binade::kernels {

// Dense, in the compute dtype, with zeros to kMaxTileWidth beyond its end. An undefined bias has no
// data.
class PackedBias {
 public:
  explicit PackedBias(const View& bias);  // [columns], any stride
  const std::byte* data() const { return workspace_.as<std::byte>(); }

 private:
  Workspace workspace_;
};

}  // namespace binade::kernels
