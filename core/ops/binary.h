// Pointwise ops of two inputs, which broadcast; comparisons; the operators.
//
// Operands of two dtypes follow one rule (docs/dtypes.md): the wider integer, or the floating dtype
// beside an integer or bool; f32 beside f64, f16 or bf16 is an error. A whole number keeps an
// integer dtype, another number makes it f32. add, sub, mul, pow, maximum, minimum and the
// divisions with rounding take i64, i32 and u8, which wrap; div and atan2 of integers give f32.
#pragma once
#include <binade/core/ops/unary.h>

namespace binade {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
// Integers give integers, which wrap around. A negative exponent is then an error; on a device the
// host waits for this check.
Tensor pow(const Tensor& a, const Tensor& b);
// log(exp(a) + exp(b)) without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
// The angle of the point (b, a), from -pi to pi.
Tensor atan2(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  // half the gradient to each at a tie
Tensor minimum(const Tensor& a, const Tensor& b);

// floor_divide: floor(a / b), gradient 0. remainder: a - b floor(a / b), with b's sign, as Python's
// %. fmod: a - b trunc(a / b), with a's sign, as C's %. Both give dy to a and -dy times the rounded
// quotient to b. An integer over a tensor's 0 gives 0; over the number 0 it is an error.
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& x, double value);
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& x, double value);
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& x, double value);

// Comparisons: bool, no gradient.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
// Compares with a number, which is rounded to x's dtype if that is a floating one.
Tensor eq(const Tensor& x, double value);
Tensor ne(const Tensor& x, double value);
Tensor lt(const Tensor& x, double value);
Tensor le(const Tensor& x, double value);
Tensor gt(const Tensor& x, double value);
Tensor ge(const Tensor& x, double value);

// |a - b| <= atol + rtol |b|, or both are the same infinity; equal_nan: or both are NaN. bool.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
// allclose: true if all elements are close. equal: true if the sizes and all elements are equal
// (NaN equals nothing). The host waits for the answer.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
bool equal(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return add(a, -b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, double b) { return remainder(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, double b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, double b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, double b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, double b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, double b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, double b) { return ge(a, b); }

}  // namespace binade
