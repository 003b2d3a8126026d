// Pointwise ops of three operands that broadcast, and logic on masks.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// condition ? a : b, element by element; condition is bool, a and b may have any dtype. Two dtypes,
// or a dtype and a number, follow the rule of docs/dtypes.md; two numbers give f32.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);
Tensor where(const Tensor& condition, double a, double b);
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);  // value where mask
// min(max(x, low), high); an undefined bound does nothing. Any dtype but bool; mixed dtypes follow
// the same rule. As in PyTorch, the gradient goes to the one that the result equals: x, low or high
// (high where high < low). Where x equals a bound, each gets half.
Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high = {});
// a + weight (b - a).
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);

// Logic on any dtype: elements other than 0 are true. The result is bool, without gradient. Shapes
// broadcast.
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);

// The same of masks. An error if an operand is not bool: of integers they could mean bits.
Tensor operator~(const Tensor& mask);
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);

}  // namespace binade
