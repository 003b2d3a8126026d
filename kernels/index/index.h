// Reading, adding and writing at indices along one dimension. Indices are i64; those out of range
// are IndexErrors (kernels/base/fault.h), which a device reports late: there they read as zeros and
// add nothing. `op` and the name of the argument are for that error.
#pragma once
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y[.., i, ..] = x[.., index[.., i, ..], ..], the middle one being dimension `dim`. x has y's sizes
// but there, and any strides, and y's dtype, any; index has y's sizes and any strides (stride 0
// where all share an index: rows of x are then copied as such). y is contiguous. Where the index is
// `exempt`, y is 0.
struct Gather {
  const char* op;
  const View& x;
  const View& index;
  const View& y;
  int dim;
  int64_t exempt = kNoExemption;
};
BINADE_KERNEL(gather, Gather, y)

// y[.., index[.., i, ..], ..] += src[.., i, ..]: floating; src and index as x and index above, of
// equal sizes, any strides; y contiguous. An element of y gets the sum of all of its terms, taken
// in a fixed order in at least Compute<T>, rounded once. Terms whose index is `exempt` are left
// out.
struct ScatterAdd {
  const char* op;
  const View& index;
  const View& src;
  const View& y;
  int dim;
  int64_t exempt = kNoExemption;
};
BINADE_KERNEL(scatter_add, ScatterAdd, y)

// y[.., index[.., i, ..], ..] = src[.., i, ..], of equal indices the last one's: any dtype, src,
// index and y as above but that y may have any strides that keep its elements apart. distinct: the
// indices are known to be in range and to differ along `dim`, as those of a sort; then no pass
// looks for equal ones.
struct Scatter {
  const char* op;
  const View& index;
  const View& src;
  const View& y;
  int dim;
  bool distinct = false;
};
BINADE_KERNEL(scatter, Scatter, y)

// y[.., c] = 1 where c is index[..], else 0. y: i64, one dimension more than index, contiguous.
struct OneHot {
  const View& index;
  const View& y;
};
BINADE_KERNEL(one_hot, OneHot, y)

}  // namespace binade::kernels
