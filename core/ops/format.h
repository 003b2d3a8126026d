// The format lab as ops: tensors with the values that they would have in another number format
// (core/precision/format_scheme.h). Nothing is stored in fewer bits: the ops show what a format
// does to numbers, not how fast it is.
#pragma once
#include <binade/core/precision/format_scheme.h>
#include <binade/core/tensor/tensor.h>

namespace binade {

// The elements of x (f32, f16, bf16 or f64) as the scheme holds them, in x's dtype and sizes. The
// gradient passes unchanged (the straight-through estimator of Bengio et al., 2013). scale: the
// positive f32 [1] scale of the tensor on x's device; undefined: as the scheme says. Delayed scales
// need one: SimulatedFormats (core/precision/simulated_formats.h) keeps them. Stochastic rounding
// draws from generator(). A dtype that does not hold a value of the scheme rounds once more.
Tensor round_to_format(const Tensor& x, const FormatScheme& scheme, const Tensor& scale = {});

// a b for a [m, k] and b [k, n] of one dtype (under a precision policy: joined to the wider one),
// summed as `sum` says. Products are exact; every sum is rounded. The gradients are products with
// sums of the same kind.
Tensor accumulated_matmul(const Tensor& a, const Tensor& b, const Accumulation& sum);

}  // namespace binade
