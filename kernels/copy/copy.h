// Copies with conversion, constants, and accumulation. Views may have any strides; outputs must not
// overlap themselves or, unless layout and dtype are the same, an input.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y = x converted to y's dtype, for every pair of dtypes. x broadcasts to y's sizes (aligned at the
// last dimension). Floating to integer truncates toward zero (out of range saturates, NaN gives 0),
// to bool is != 0, to a narrower floating dtype rounds to nearest even; integer to integer wraps.
struct Copy {
  const View& x;
  const View& y;
};
BINADE_KERNEL(copy, Copy, y)

// y = value, converted from f64 by the rules of Copy.
struct Fill {
  const View& y;
  double value;
};
BINADE_KERNEL(fill, Fill, y)

// y += x: gradient accumulation. Same sizes, same floating dtype; added in Compute<T>, rounded
// once.
struct AddInto {
  const View& x;
  const View& y;
};
BINADE_KERNEL(add_into, AddInto, y)

}  // namespace binade::kernels
