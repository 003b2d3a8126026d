// Dimension arguments of ops.
#pragma once
#include <binade/kernels/base/dims.h>

namespace binade {

// `dim` counted from 0, for a tensor of `rank` dimensions (a scalar counts as one dimension).
inline int wrap_dim(const char* op, int64_t dim, int rank) {
  const int64_t range = rank > 0 ? rank : 1;
  check(dim >= -range && dim < range, op, ": got dimension ", dim, ", expected ", -range, " to ",
        range - 1, " for a tensor of ", rank, " dimensions");
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

}  // namespace binade
