// Reductions over any set of dimensions. Sums accumulate in Compute<T> in blocks of a structure
// that depends on the shape only (error grows like the logarithm of the count; the same bits at any
// thread count) and are rounded once on store. Views may have any strides.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

enum class Reduce : uint8_t { sum, mean, max, min, prod };

constexpr const char* to_string(Reduce op) {
  constexpr const char* kName[] = {"sum", "mean", "max", "min", "prod"};
  return kName[static_cast<int>(op)];
}

// y has x's rank and dtype; a dimension of size 1 in y is reduced, the others have x's size. All
// floating dtypes; sum, max, min and prod also i64 and i32 (wrapping). Of nothing the sum is 0, the
// product 1, the mean NaN, and max or min an error. NaN wins in max and min.
struct ReduceForward {
  Reduce op;
  const View& x;
  const View& y;
};
BINADE_KERNEL(reduce_forward, ReduceForward, y)

// y (i64) = index of the first largest element of x along `dim` (0 <= dim < rank); NaN wins. y has
// x's sizes without `dim`, or with size 1 there. An empty `dim` is an error. x: floating, i64, i32.
struct ArgMax {
  const View& x;
  const View& y;
  int dim;
};
BINADE_KERNEL(argmax, ArgMax, y)

}  // namespace binade::kernels
