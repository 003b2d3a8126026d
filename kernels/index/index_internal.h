// The loops of the index kernels, the same on every device.
#pragma once
#include <binade/kernels/index/index.h>

namespace binade::kernels {

// [outer, count, inner] around the dimension that is indexed, which has `bound` elements on the
// other side. rows: all of an inner range share an index, so index_inner is 1, else inner.
struct IndexShape {
  int64_t outer = 1, count, inner = 1, bound;
  bool rows;
  int64_t index_inner;
};
IndexShape index_shape(const View& index, int dim, int64_t bound);

// The indices that differ: without the dimensions behind `dim` where rows are indexed.
View distinct_indices(const View& index, int dim, const IndexShape& shape);

// y as seen by the entries of index: their sizes, and stride 0 along `dim`.
View target_lines(const Scatter& a);

}  // namespace binade::kernels
