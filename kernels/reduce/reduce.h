// Reductions over any set of dimensions, and the values that their gradients need. Sums accumulate
// in Compute<T> in blocks whose structure depends on the shape only (the error grows like the
// logarithm of the count; the same bits at any thread count) and are rounded once on store. Views
// may have any strides.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// var and std: deviations from the mean of each part, merged (Chan et al., 1979), so a large mean
// costs no digits. They and norm2 square in f64: in range for every f32, f16 and bf16 input.
enum class Reduce : uint8_t {
  sum,
  mean,
  max,
  min,
  prod,
  norm1,
  norm2,
  norm_inf,
  logsumexp,
  var,
  std
};

inline constexpr const char* kReduceName[] = {
    "sum", "mean", "max", "min", "prod", "norm1", "norm2", "norm_inf", "logsumexp", "var", "std"};
constexpr const char* to_string(Reduce op) { return kReduceName[static_cast<int>(op)]; }

// y has x's rank, and x's dtype or its compute dtype; dimensions of size 1 in y are reduced, the
// others have x's size. All floating dtypes; sum, max and min every dtype, prod also i64 and i32.
// The sum of integers or bools is i64. Sums and products of integers wrap. Of nothing the sum and
// the norms are 0, the product 1, the mean, var and std NaN, logsumexp -inf, and max, min or
// norm_inf an error. NaN wins in max, min and norm_inf. var and std divide by max(0, n -
// correction). aux, if defined, has y's sizes and aux_dtype() and gets what the gradient needs:
//   max, min, norm_inf   how many elements have the value of the result; of NaN how many are NaN
//   prod                 the product of the other elements where exactly one is zero, else 0
//   var, std             the mean, in f64
constexpr DType aux_dtype(Reduce op, DType dtype) {
  return op == Reduce::var || op == Reduce::std ? DType::f64 : compute_dtype(dtype);
}
struct ReduceForward {
  Reduce op;
  const View& x;
  const View& y;
  const View& aux = kNoView;
  double correction = 0;
};
BINADE_PROVIDED_KERNEL(reduce_forward, ReduceForward, y)

// dx = f(x, a, b), element by element. a and b have the compute dtype and broadcast to x's sizes;
// an undefined b is 0. The b of deviation is f64, so that a large mean costs x - b no digits. dx
// has x's sizes and dtype and may be x.
enum class ReduceSlope : uint8_t {
  deviation,     // a (x - b)
  sign,          // a sign(x)
  equal,         // a where x = b or both are NaN, else 0
  equal_or_nan,  // a where x = b, else 0, or NaN where b is NaN
  equal_abs,     // a sign(x) where |x| = b, else 0
  exponential,   // a exp(x - b)
  direction,     // a (x / b) where b is not 0, else 0
  quotient       // a / x where x is not 0, else b
};
struct ReduceBackward {
  ReduceSlope op;
  const View& x;
  const View& a;
  const View& b;
  const View& dx;
};
BINADE_KERNEL(reduce_backward, ReduceBackward, dx)

// y (i64) = index of the first largest (or smallest) element of x along `dim` (0 <= dim < rank); a
// NaN counts as largest (or smallest). y has x's sizes without `dim`, or with size 1 there; values,
// if defined, gets the elements and has y's sizes and x's dtype. An empty `dim` is an error. x:
// floating, i64, i32.
struct ArgMax {
  const View& x;
  const View& y;
  int dim;
  const View& values = kNoView;
  bool smallest = false;
};
BINADE_KERNEL(argmax, ArgMax, y)

}  // namespace binade::kernels
