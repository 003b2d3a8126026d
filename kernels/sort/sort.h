// Sorting, and the largest elements along one dimension. NaN counts as larger than everything;
// equal elements keep their order in both directions. All dtypes, any strides; a line has at most
// 2^32 - 2 elements.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// values = x sorted along `dim` (0 <= dim < rank), indices (i64) = their positions in x. Both have
// x's sizes, and neither may overlap x.
struct Sort {
  const View& x;
  const View& values;
  const View& indices;
  int dim;
  bool descending = false;
};
BINADE_KERNEL(sort, Sort, values)

// The k = values.size(dim) largest (or smallest) elements along `dim`, in that order.
struct TopK {
  const View& x;
  const View& values;
  const View& indices;
  int dim;
  bool largest = true;
};
BINADE_KERNEL(topk, TopK, values)

}  // namespace binade::kernels
