// Pointwise ops: more activations, comparisons with a number, selection, interpolation, logic on
// masks, and the operators. Included by core/ops.h.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string_view>

namespace binade {

// One input
// --------------------------------------------------------------------------------------------
Tensor expm1(const Tensor& x);  // exp(x) - 1 without cancellation
Tensor log1p(const Tensor& x);  // log(1 + x) without cancellation
Tensor sign(const Tensor& x);   // -1, 0 or 1; gradient 0
Tensor erf(const Tensor& x);
Tensor relu6(const Tensor& x);
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);  // gradient 0 at the bounds
Tensor hardswish(const Tensor& x);                                   // x relu6(x + 3) / 6
Tensor mish(const Tensor& x);                                        // x tanh(softplus(x))
Tensor log_sigmoid(const Tensor& x);
Tensor gelu(const Tensor& x, std::string_view approximate);  // "none" or "tanh"
Tensor sub(double value, const Tensor& x);                   // value - x
Tensor div(double value, const Tensor& x);                   // value / x

// Comparison with a number, rounded to x's dtype (integer dtypes: a whole number): bool, no
// gradient.
Tensor eq(const Tensor& x, double value);
Tensor ne(const Tensor& x, double value);
Tensor lt(const Tensor& x, double value);
Tensor le(const Tensor& x, double value);
Tensor gt(const Tensor& x, double value);
Tensor ge(const Tensor& x, double value);

// Logic; any dtype, elements other than 0 are true: bool, no gradient. Shapes broadcast.
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);

// Several inputs; all broadcast
// ------------------------------------------------------------------------
// condition ? a : b, element by element; condition is bool, a and b may have any dtype.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);  // value where mask
// a + weight (b - a).
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);

inline Tensor operator==(const Tensor& a, double b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, double b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, double b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, double b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, double b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, double b) { return ge(a, b); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }

}  // namespace binade
