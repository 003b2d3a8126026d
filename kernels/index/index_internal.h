// The shape of an index kernel's loops, the same on every device.
#pragma once
#include <binade/kernels/index/index.h>

namespace binade::kernels {

// [outer, count, inner] around the indexed dimension, whose size on the other side is `bound`.
// rows: the whole inner range shares an index, so index_inner is 1, else it is inner.
struct IndexShape {
  int64_t outer = 1, count, inner = 1, bound;
  bool rows;
  int64_t index_inner;
};
IndexShape index_shape(const View& index, int dim, int64_t bound);

// The indices that may differ: if rows share an index, without the dimensions after `dim`.
View distinct_indices(const View& index, int dim, const IndexShape& shape);

// y with the sizes of index, and stride 0 along `dim`.
View target_lines(const Scatter& a);

}  // namespace binade::kernels
