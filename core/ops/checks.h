// Checks of arguments that many ops share.
#pragma once
#include <binade/core/tensor.h>

namespace binade {

inline void check_defined(const char* op, const Tensor& x) {
  check(x.defined(), op, ": got an undefined tensor");
}

inline void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  check(is_floating(x.dtype()), op, ": got dtype ", x.dtype(),
        ", expected a floating dtype; convert it with to()");
}

// `dim` counted from 0, for a tensor of `rank` dimensions (a scalar counts as one dimension).
inline int wrap_dim(const char* op, int64_t dim, int rank) {
  const int64_t range = rank > 0 ? rank : 1;
  check(dim >= -range && dim < range, op, ": got dimension ", dim, ", expected ", -range, " to ",
        range - 1, " for a tensor of ", rank, " dimensions");
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

}  // namespace binade
