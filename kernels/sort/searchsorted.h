// Places of values in sorted rows, by binary search.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y[r, i] = the number of elements of sequence[r] that are less than values[r, i], or with `right`
// not larger. sequence [rows, n], each row ascending, and values [rows, m] have one dtype (any); y
// is i64 [rows, m]. All are contiguous. NaN is larger than everything else, as in sort.h;
// rows that are not sorted give a number of 0 to n.
struct SearchSorted {
  const View& sequence;
  const View& values;
  const View& y;
  bool right = false;
};
BINADE_KERNEL(searchsorted, SearchSorted, y)

}  // namespace binade::kernels
