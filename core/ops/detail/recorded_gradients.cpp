#include <binade/core/ops.h>
#include <binade/core/ops/detail/recorded_gradients_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/pointwise/pointwise_functors.h>

#include <limits>
#include <numbers>

namespace binade::detail {
namespace {

using kernels::Binary;
using kernels::Unary;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor one_minus_square(const Tensor& x) { return mul(sub(1, x), add(x, 1)); }
// exp(x / scale) where x <= 0. Elsewhere it is 1: an infinity there would make NaN of a zero
// gradient.
Tensor exp_below(const Tensor& x, double scale) { return exp(div(clamp(x, -kInfinity, 0), scale)); }
// x between limits beyond which slopes no longer change: an infinity times 0 would be NaN.
Tensor limited(const Tensor& x) { return clamp(x, -1000, 1000); }

// dx of the elementary functions; undefined for other ops.
Tensor of_function(Unary op, const Tensor& saved, const Tensor& dy) {
  const Tensor &x = saved, &y = saved;  // the op saves one of them
  switch (op) {
    case Unary::square: return mul(mul(dy, x), 2);
    case Unary::sqrt: return div(dy, mul(y, 2));
    case Unary::rsqrt: return mul(mul(mul(mul(dy, y), y), y), -0.5);
    case Unary::reciprocal: return neg(mul(mul(dy, y), y));
    case Unary::exp: return mul(dy, y);
    case Unary::expm1: return mul(dy, add(y, 1));
    case Unary::exp2: return mul(mul(dy, y), std::numbers::ln2);
    case Unary::log: return div(dy, x);
    case Unary::log1p: return div(dy, add(x, 1));
    case Unary::log2: return div(dy, mul(x, std::numbers::ln2));
    case Unary::sin: return mul(dy, cos(x));
    case Unary::cos: return neg(mul(dy, sin(x)));
    case Unary::tan: return mul(dy, add(square(y), 1));
    case Unary::asin: return div(dy, sqrt(one_minus_square(x)));
    case Unary::acos: return neg(div(dy, sqrt(one_minus_square(x))));
    case Unary::atan: return div(dy, add(square(x), 1));
    case Unary::sinh: return mul(dy, cosh(x));
    case Unary::cosh: return mul(dy, sinh(x));
    case Unary::tanh: return mul(dy, one_minus_square(y));
    case Unary::erf: return mul(mul(dy, exp(neg(square(x)))), 2 * std::numbers::inv_sqrtpi);
    case Unary::sigmoid: return mul(mul(dy, sub(1, y)), y);
    case Unary::log_sigmoid: return mul(dy, sigmoid(neg(x)));
    default: return {};
  }
}

// dx of the ops that are linear, also piece by piece; undefined for other ops.
Tensor of_pieces(const SavedUnary& f, const Tensor& dy) {
  const Tensor &x = f.saved, &y = f.saved;
  switch (f.op) {
    case Unary::neg:
    case Unary::rsub_scalar: return neg(dy);
    case Unary::frac:
    case Unary::add_scalar: return dy;
    case Unary::mul_scalar: return mul(dy, f.alpha);
    case Unary::div_scalar: return div(dy, f.alpha);
    case Unary::sign:
    case Unary::floor:
    case Unary::ceil:
    case Unary::round:
    case Unary::trunc: return zeros_like(dy);
    case Unary::abs: return mul(dy, sign(x));
    case Unary::relu: return masked_fill(dy, le(y, 0), 0);
    case Unary::leaky_relu: return where(gt(x, 0), dy, mul(dy, f.alpha));
    case Unary::clamp: return where(logical_and(ge(x, f.alpha), le(x, f.beta)), dy, 0);
    case Unary::hardtanh: return masked_fill(dy, logical_or(le(x, f.alpha), ge(x, f.beta)), 0);
    case Unary::hardsigmoid: return where(lt(abs(x), 3), div(dy, 6), 0);
    case Unary::hardswish:
      return where(ge(x, 3), dy, where(le(x, -3), 0, mul(dy, add(div(x, 3), 0.5))));
    default: return {};
  }
}

// dx of activations with exponentials, and of powers.
Tensor of_activation(const SavedUnary& f, const Tensor& dy) {
  using kernels::functor::Selu;
  const Tensor& x = f.saved;
  switch (f.op) {
    case Unary::silu: {
      const Tensor z = limited(x), s = sigmoid(z);
      return mul(dy, mul(s, add(mul(z, sigmoid(neg(z))), 1)));
    }
    case Unary::mish: {
      const Tensor z = limited(x), t = tanh(softplus(z));
      return mul(dy, add(mul(mul(z, sigmoid(z)), one_minus_square(t)), t));
    }
    case Unary::selu: {
      const Tensor up = mul(dy, Selu::kScale);
      return where(gt(x, 0), up, mul(mul(up, Selu::kAlpha), exp_below(x, 1)));
    }
    case Unary::elu: return where(gt(x, 0), dy, mul(mul(dy, f.alpha), exp_below(x, 1)));
    case Unary::celu: return where(gt(x, 0), dy, mul(dy, exp_below(x, f.alpha)));
    case Unary::softsign: {
      const Tensor width = add(abs(x), 1);
      return div(div(dy, width), width);
    }
    case Unary::softplus: {
      const Tensor z = mul(x, f.alpha);
      return where(gt(z, f.beta), dy, mul(dy, sigmoid(z)));
    }
    case Unary::rdiv_scalar: return neg(mul(dy, div(div(f.alpha, x), x)));
    case Unary::pow_scalar:
      return f.alpha == 0 ? zeros_like(dy) : mul(dy, mul(pow(x, f.alpha - 1), f.alpha));
    default: return {};
  }
}

// dy for the input that is chosen, half of it at a tie. `other`: where the other one is chosen.
Tensor of_choice(const Tensor& dy, const Tensor& other, const Tensor& tie) {
  return where(tie, mul(dy, 0.5), masked_fill(dy, other, 0));
}

// da and db of a power. Where a is 0 its logarithm counts as 0: there a^b has no slope in b.
Grads of_power(const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) {
  Tensor da, db;
  if (needs[0]) {
    const Tensor flat = eq(b, 0), exponent = masked_fill(add(b, -1), flat, 1);
    da = mul(dy, masked_fill(mul(b, pow(a, exponent)), flat, 0));
  }
  if (needs[1]) {
    const Tensor zero = logical_and(eq(a, 0), ge(b, 0));
    db = mul(dy, mul(pow(a, b), log(masked_fill(a, eq(a, 0), 1))));
    db = masked_fill(db, zero, 0);
  }
  return {da, db};
}

}  // namespace

Tensor recorded_gradient(const SavedUnary& f, const Tensor& dy) {
  Tensor dx = of_function(f.op, f.saved, dy);
  dx = dx.defined() ? dx : of_pieces(f, dy);
  return dx.defined() ? dx : of_activation(f, dy);
}

Grads recorded_gradients(Binary f, const Tensor& dy, Needs needs, const Tensor& a,
                         const Tensor& b) {
  switch (f) {
    case Binary::div: {
      const Tensor da = div(dy, b);
      return {needs[0] ? da : Tensor(), needs[1] ? neg(mul(dy, div(div(a, b), b))) : Tensor()};
    }
    case Binary::pow: return of_power(dy, needs, a, b);
    case Binary::atan2: {
      const Tensor h = add(square(a), square(b)), origin = eq(h, 0);
      const Tensor d = masked_fill(div(dy, masked_fill(h, origin, 1)), origin, 0);
      return {needs[0] ? mul(d, b) : Tensor(), needs[1] ? neg(mul(d, a)) : Tensor()};
    }
    case Binary::logaddexp:
      return {needs[0] ? mul(dy, sigmoid(sub(a, b))) : Tensor(),
              needs[1] ? mul(dy, sigmoid(sub(b, a))) : Tensor()};
    case Binary::maximum:
      return {needs[0] ? of_choice(dy, lt(a, b), eq(a, b)) : Tensor(),
              needs[1] ? of_choice(dy, gt(a, b), eq(a, b)) : Tensor()};
    case Binary::minimum:
      return {needs[0] ? of_choice(dy, gt(a, b), eq(a, b)) : Tensor(),
              needs[1] ? of_choice(dy, lt(a, b), eq(a, b)) : Tensor()};
    case Binary::floor_divide: return {zeros_like(dy), zeros_like(dy)};
    case Binary::remainder: return {dy, needs[1] ? neg(mul(dy, floor_divide(a, b))) : Tensor()};
    default: return {dy, needs[1] ? neg(mul(dy, trunc(div(a, b)))) : Tensor()};  // fmod
  }
}

}  // namespace binade::detail
