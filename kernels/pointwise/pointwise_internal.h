// Checks of the arguments of pointwise kernels that every backend makes, and choices that backends
// share.
#pragma once
#include <binade/kernels/base/strided.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade::kernels {

// The views that BinaryBackward reads. If the values of a or b do not matter, dy takes their place.
struct BinarySaved {
  const View& a;
  const View& b;
};
BinarySaved checked_operands(const BinaryBackward& a);

// True for row-major views of one floating dtype and the same sizes. They are what most calls have,
// and check_arguments() accepts them.
inline bool is_plain(const View& y, const View& a) {
  return a.dtype == y.dtype && is_floating(y.dtype) && all_flat(y, a);
}
inline bool is_plain(const View& y, const View& a, const View& b) {
  return is_plain(y, a) && b.dtype == y.dtype && b.contiguous && b.sizes == y.sizes;
}

// x^1 and x^2 need no power function.
constexpr Unary simplified(Unary op, double alpha) {
  return op != Unary::pow_scalar ? op
         : alpha == 2            ? Unary::square
         : alpha == 1            ? Unary::mul_scalar
                                 : op;
}

}  // namespace binade::kernels
