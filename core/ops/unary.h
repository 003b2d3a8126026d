// Pointwise ops of one input, y = f(x), and their options. The formulas, with their gradients, are
// in kernels/pointwise/pointwise_functors.h. Inputs are floating; neg, abs, square, sign, clamp and
// the ops of a tensor and a number also take i64, i32 and u8, exactly, and the last ones bool.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>
#include <string_view>

namespace binade {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor square(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);       // 1 / sqrt(x)
Tensor reciprocal(const Tensor& x);  // 1 / x
Tensor exp(const Tensor& x);
// 2^x.
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);  // exp(x) - 1 without cancellation
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log1p(const Tensor& x);  // log(1 + x) without cancellation
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sign(const Tensor& x);  // -1, 0 or 1; gradient 0

// Whole numbers; gradient 0.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // half to even
Tensor trunc(const Tensor& x);
Tensor frac(const Tensor& x);  // x - trunc(x), gradient 1

// Kinds of numbers, of any dtype: bool, without gradient.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
// NaN, inf and -inf replaced by numbers, by default the largest and the lowest of x's dtype.
// Gradient 0 there. Floating dtypes.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});

// Activations
Tensor sigmoid(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor relu6(const Tensor& x);  // min(max(x, 0), 6)
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor gelu(const Tensor& x);                                // exact, by erf
Tensor gelu_tanh(const Tensor& x);                           // the tanh approximation
Tensor gelu(const Tensor& x, std::string_view approximate);  // "none" or "tanh"
Tensor silu(const Tensor& x);                                // x sigmoid(x)
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor elu(const Tensor& x, double alpha = 1);
// x above 0, alpha (exp(x / alpha) - 1) below.
Tensor celu(const Tensor& x, double alpha = 1);
// 1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1 (Klambauer et al., 2017).
Tensor selu(const Tensor& x);
// x / (1 + |x|).
Tensor softsign(const Tensor& x);
// relu6(x + 3) / 6.
Tensor hardsigmoid(const Tensor& x);
Tensor mish(const Tensor& x);                                        // x tanh(softplus(x))
Tensor hardswish(const Tensor& x);                                   // x relu6(x + 3) / 6
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);  // gradient 0 at the bounds

// Ops of a tensor and a number. A whole number keeps an integer dtype, which must hold it; as a
// double it is exact up to 2^53. A fraction, or div, gives f32; bool counts as i64. One bound of
// clamp may be absent; its gradient is 1 at the bounds.
Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high = {});
// For integers a whole exponent must be 0 or more and gives integers, which wrap; a fraction f32.
Tensor pow(const Tensor& x, double exponent);
Tensor add(const Tensor& x, double value);
Tensor mul(const Tensor& x, double value);
Tensor div(const Tensor& x, double value);
Tensor sub(double value, const Tensor& x);  // value - x
Tensor div(double value, const Tensor& x);  // value / x

// Zeroes each element with probability p and scales the others by 1 / (1 - p). Draws from
// generator().
Tensor dropout(const Tensor& x, double p);

}  // namespace binade
