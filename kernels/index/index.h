// Gather, scatter and scatter_add at indices along one dimension. Indices are i64. Those out of
// range are IndexErrors (kernels/base/fault.h), which a device reports later: it reads zeros there
// and adds nothing. `op` and the name of the argument appear in that error.
#pragma once
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// No index that is in range is exempt from a gather or a scatter_add.
inline constexpr int64_t kNoExemption = -1;

// y[.., i, ..] = x[.., index[.., i, ..], ..], where the middle dimension is `dim`. x has y's dtype
// (any) and y's sizes except at `dim`, and any strides. index has y's sizes and any strides; if all
// elements of a row share one index (stride 0), x is copied by rows. y is contiguous. Where the
// index is `exempt` (in range), y is 0.
struct Gather {
  const char* op;
  const View& x;
  const View& index;
  const View& y;
  int dim;
  int64_t exempt = kNoExemption;
};
BINADE_KERNEL(gather, Gather, y)

// How scatter_add combines an element with its terms. For max and min, NaN wins.
enum class ScatterOp : uint8_t { sum, prod, max, min };

// y[.., index[.., i, ..], ..] += src[.., i, ..]: floating, i64 or i32; src and index have equal
// sizes and any strides; y is contiguous and has their sizes except at `dim`. An element of y gets
// the sum of all its terms, added in a fixed order in at least Compute<T> and rounded once;
// integers wrap. Terms whose index is `exempt` are left out. `combine` may be another operation.
struct ScatterAdd {
  const char* op;
  const View& index;
  const View& src;
  const View& y;
  int dim;
  int64_t exempt = kNoExemption;
  ScatterOp combine = ScatterOp::sum;
};
BINADE_KERNEL(scatter_add, ScatterAdd, y)

// y[.., index[.., i, ..], ..] = src[.., i, ..]; of equal indices the last one counts. Any dtype;
// src, index and y as above, but y may have any strides without overlap. distinct: the caller knows
// that the indices are in range and differ along `dim`, for example after a sort; then no pass
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

// y[.., c] = 1 if c is index[..], else 0. y: i64, contiguous, one dimension more than index.
struct OneHot {
  const View& index;
  const View& y;
};
BINADE_KERNEL(one_hot, OneHot, y)

}  // namespace binade::kernels
