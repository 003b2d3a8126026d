// Joins the indices of several dimensions to one: an element's offset is a sum of one index per
// dimension, each times a step. One call adds the indices of one dimension.
#pragma once
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y = index * step, or y + index * step if `accumulate`. index: i64, any strides, broadcasts to y's
// sizes. Negative indices count from `bound`; those outside -bound .. bound - 1 are IndexErrors
// (kernels/base/fault.h), for which a device adds 0. y: i64, contiguous.
struct IndexOffset {
  const char* op;
  const View& index;
  const View& y;
  int64_t bound;
  int64_t step;
  bool accumulate;
};
BINADE_KERNEL(index_offset, IndexOffset, y)

}  // namespace binade::kernels
