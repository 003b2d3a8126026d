// Pointwise ops of one input: y = f(x), dx = dy f'(x). f and f' are the functor pairs of
// kernels/pointwise/pointwise_functors.h. The rows of the lists in kernels/pointwise/pointwise.h
// define most ops; the ops written out here have another signature or another backward.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/promotion_internal.h>
#include <binade/core/ops/detail/recorded_gradients_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/pointwise/pointwise_functors.h>
#include <binade/kernels/random/random.h>

#include <cmath>
#include <limits>

namespace binade {
namespace {

using kernels::Unary;

// True if the forward computes f' together with f and saves it instead of x; the backward then only
// multiplies. Only in f32 on the CPU: a slope in f16 would be rounded once more.
bool keeps_slope(Unary f, const Tensor& x) {
  return kernels::has_slope(f) && x.dtype() == DType::f32 && x.device().is_cpu() &&
         x.is_contiguous() && grad_enabled() && x.requires_grad();
}

Tensor with_slope(const Op& op, Unary f, const Tensor& x) {
  Tensor y = empty_like(x);
  const Tensor slope = empty_like(x);
  kernels::cpu::unary_forward_slope({.op = f, .x = x, .y = y, .slope = slope});
  return op.record(
      {x}, y, save(slope), [](const Tensor& dy, Needs needs, const Tensor& slope) -> Grads {
        Tensor dx = needs.out_over(0, dy);
        kernels::binary_forward({.op = kernels::Binary::mul, .a = dy, .b = slope, .y = dx});
        return {dx};
      });
}

// Integers to a whole power stay integers; to another power they are f32.
Tensor integer_power(const Op& op, const Tensor& x, double exponent) {
  const bool whole = exponent == std::floor(exponent) && !std::isinf(exponent);
  check(exponent >= 0 || !whole, op.name, ": got exponent ", exponent, " for a tensor of dtype ",
        x.dtype(), ", expected 0 or more; convert the tensor with to(DType::f32)");
  const auto [base, power] = detail::with_number(op.name, x, exponent);
  return pow(base, power);
}

// Ops that take integers too, composed of ops of two inputs, which are exact in 64 bits.
Tensor of_integers(const Op& op, Unary f, const Tensor& x, double low, double high) {
  const DType dtype = x.dtype();
  if (f == Unary::pow_scalar) {
    return integer_power(op, x, low);
  }
  if (dtype != DType::boolean) {
    switch (f) {
      case Unary::neg: return sub(full({}, 0, dtype, x.device()), x);
      case Unary::abs: return maximum(x, dtype == DType::u8 ? x : neg(x));
      case Unary::square: return mul(x, x);
      case Unary::sign: return sub(cast(gt(x, 0), dtype), cast(lt(x, 0), dtype));
      case Unary::clamp: {
        Tensor y = x;
        y = std::isinf(low) ? y : maximum(y, detail::with_number(op.name, x, low).number);
        return std::isinf(high) ? y : minimum(y, detail::with_number(op.name, x, high).number);
      }
      default: break;
    }
  }
  check_floating(op.name, x);
  return {};
}

Tensor unary(const Op& op, Unary f, const Tensor& x_, double alpha = 0, double beta = 0) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    return of_integers(op, f, x, alpha, beta);
  }
  if (keeps_slope(f, x)) {
    return with_slope(op, f, x);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = f, .x = x, .y = y, .alpha = alpha, .beta = beta});
  const bool output = kernels::backward_uses_output(f);
  return op.record(
      {x}, y, save(output ? y : x),
      [f, alpha, beta](const Tensor& dy, Needs needs, const Tensor& saved) -> Grads {
        if (grad_enabled()) {
          return {detail::recorded_gradient({f, saved, alpha, beta}, dy)};
        }
        Tensor dx = needs.out_over(0, dy);
        kernels::unary_backward(
            {.op = f, .saved = saved, .dy = dy, .dx = dx, .alpha = alpha, .beta = beta});
        return {dx};
      });
}

// f of integers or bools and a number.
using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);
Tensor arithmetic(const char* op, BinaryOp f, const Tensor& x, double value) {
  const auto [a, b] = detail::with_number(op, x, value);
  return f(a, b);
}

// Checks the option of an op. A functor that restricts its option has takes(double) and the text
// kTakes.
template <class Functor>
void check_option(const char* op, const char* option, double value) {
  if constexpr (requires { Functor::kTakes; }) {
    check(Functor::takes(value), op, ": got ", option, " = ", value, ", expected ",
          Functor::kTakes);
  }
}

}  // namespace

Tensor softplus(const Tensor& x, double beta, double threshold) {
  static constexpr Op kOp{"softplus", OpClass::wide_pointwise, true};
  return unary(kOp, Unary::softplus, x, beta, threshold);
}

Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high) {
  static constexpr Op kOp{"clamp", OpClass::pointwise, true};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  check(low || high, "clamp: got no bound, expected at least one of low and high");
  if ((low && std::isnan(*low)) || (high && std::isnan(*high))) {  // NaN everywhere, gradient 0
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    return add(unary(kOp, Unary::clamp, x, kNaN, kNaN), kNaN);
  }
  return unary(kOp, Unary::clamp, x, low.value_or(-kInfinity), high.value_or(kInfinity));
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  static constexpr Op kOp{"hardtanh", OpClass::pointwise, true};
  check(low <= high, "hardtanh: got low ", low, " and high ", high, ", expected low <= high");
  return unary(kOp, Unary::hardtanh, x, low, high);
}

Tensor relu6(const Tensor& x) {
  static constexpr Op kOp{"relu6", OpClass::pointwise, true};
  return unary(kOp, Unary::hardtanh, x, 0, 6);
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  check(approximate == "none" || approximate == "tanh", "gelu: got approximate = '",
        std::string(approximate), "', expected 'none' or 'tanh'");
  return approximate == "tanh" ? gelu_tanh(x) : gelu(x);
}

Tensor pow(const Tensor& x, double exponent) {
  static constexpr Op kOp{"pow", OpClass::wide_pointwise, true};
  return unary(kOp, Unary::pow_scalar, x, exponent);
}

// Kinds of numbers. The class `movement` takes x as it is: a cast to f16 could make an infinity.

namespace {

// Compares |x| with infinity by f.
Tensor against_infinity(const Op& op, kernels::Compare f, const Tensor& x_) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  Tensor y = empty_like(x, DType::boolean);
  if (!is_floating(x.dtype())) {
    y.fill_(f == kernels::Compare::lt);
    return op.plain({x}, y);
  }
  const Tensor size = empty_like(x);
  kernels::unary_forward({.op = Unary::abs, .x = x, .y = size});
  kernels::compare_forward({.op = f,
                            .a = size,
                            .b = kNoView,
                            .y = y,
                            .number = std::numeric_limits<double>::infinity()});
  return op.plain({x}, y);
}

}  // namespace

Tensor isnan(const Tensor& x_) {
  static constexpr Op kOp{"isnan", OpClass::movement};
  auto [x] = kOp.enter(x_);
  check_defined(kOp.name, x);
  Tensor y = empty_like(x, DType::boolean);
  kernels::compare_forward({.op = kernels::Compare::ne, .a = x, .b = x, .y = y});
  return kOp.plain({x}, y);
}

Tensor isinf(const Tensor& x) {
  static constexpr Op kOp{"isinf", OpClass::movement};
  return against_infinity(kOp, kernels::Compare::eq, x);
}

Tensor isfinite(const Tensor& x) {
  static constexpr Op kOp{"isfinite", OpClass::movement};
  return against_infinity(kOp, kernels::Compare::lt, x);
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  check_floating("nan_to_num", x);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const PrecisionScope full_precision{Precision::full()};  // a cast to f16 could make an infinity
  const double largest = x.dtype() == DType::f64   ? std::numeric_limits<double>::max()
                         : x.dtype() == DType::f16 ? 65504
                         : x.dtype() == DType::f32 ? std::numeric_limits<float>::max()
                                                   : 0x1.fep127;
  const Tensor values = x.detach();
  const Tensor finite = where(isnan(values), nan, x);
  const Tensor below = where(eq(values, kInfinity), posinf.value_or(largest), finite);
  return where(eq(values, -kInfinity), neginf.value_or(-largest), below);
}

// Linear ops: their gradients need no saved tensor and are made of ops.

Tensor neg(const Tensor& x_) {  // y = -x
  static constexpr Op kOp{"neg", OpClass::pointwise, true};
  auto [x] = kOp.enter(x_);
  check_defined(kOp.name, x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    return of_integers(kOp, Unary::neg, x, 0, 0);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = Unary::neg, .x = x, .y = y});
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {neg(dy)}; });
}

Tensor add(const Tensor& x_, double value) {  // y = x + value
  static constexpr Op kOp{"add_scalar", OpClass::pointwise, true};
  auto [x] = kOp.enter(x_);
  check_defined("add", x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    const bool below = value < 0 && x.dtype() == DType::u8;  // u8 does not hold the number
    return arithmetic("add", below ? BinaryOp(sub) : BinaryOp(add), x, below ? -value : value);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = Unary::add_scalar, .x = x, .y = y, .alpha = value});
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor sub(double value, const Tensor& x_) {  // y = value - x
  static constexpr Op kOp{"sub", OpClass::pointwise, true};
  auto [x] = kOp.enter(x_);
  check_defined(kOp.name, x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    const auto [a, number] = detail::with_number(kOp.name, x, value);
    return sub(number, a);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = Unary::rsub_scalar, .x = x, .y = y, .alpha = value});
  return kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {neg(dy)}; });
}

Tensor div(double value, const Tensor& x) {  // y = value / x
  static constexpr Op kOp{"rdiv_scalar", OpClass::wide_pointwise, true};
  check_defined("div", x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    return div(value, cast(x, DType::f32));
  }
  return unary(kOp, Unary::rdiv_scalar, x, value);
}

Tensor mul(const Tensor& x_, double value) {  // y = x value
  static constexpr Op kOp{"mul_scalar", OpClass::pointwise, true};
  auto [x] = kOp.enter(x_);
  check_defined("mul", x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    return arithmetic("mul", mul, x, value);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = Unary::mul_scalar, .x = x, .y = y, .alpha = value});
  return kOp.record({x}, y, save(),
                    [value](const Tensor& dy) -> Grads { return {mul(dy, value)}; });
}

Tensor div(const Tensor& x_, double value) {  // y = x / value; x (1 / value) would round twice
  static constexpr Op kOp{"div_scalar", OpClass::pointwise, true};
  auto [x] = kOp.enter(x_);
  check_defined("div", x);
  if (!is_floating(x.dtype())) [[unlikely]] {
    return div(cast(x, DType::f32), value);
  }
  Tensor y = empty_like(x);
  kernels::unary_forward({.op = Unary::div_scalar, .x = x, .y = y, .alpha = value});
  return kOp.record({x}, y, save(),
                    [value](const Tensor& dy) -> Grads { return {div(dy, value)}; });
}

namespace {

// The random numbers of a dropout, which the backward draws again.
struct DropoutDraw {
  double p;
  uint64_t seed, offset;
};

// y = keep x / (1 - p), and dx is the same of dy.
Tensor dropped(const Op& op, const Tensor& x, const DropoutDraw& draw, const Tensor& advance) {
  const auto apply = [](const DropoutDraw& d, const Tensor& advance, const Tensor& from,
                        const Tensor& to) {
    kernels::dropout(
        {.x = from, .y = to, .p = d.p, .seed = d.seed, .offset = d.offset, .advance = advance});
  };
  Tensor y = empty_like(x);
  apply(draw, advance, x, y);
  return op.record(
      {x}, y, save(advance),
      [op = &op, draw, apply](const Tensor& dy, Needs needs, const Tensor& advance) -> Grads {
        if (grad_enabled()) {
          return {dropped(*op, dy, draw, advance)};
        }
        Tensor dx = needs.out_like(0, dy);
        apply(draw, advance, dy, dx);
        return {dx};
      });
}

}  // namespace

Tensor dropout(const Tensor& x_, double p) {
  static constexpr Op kOp{"dropout", OpClass::pointwise, true};
  check(p >= 0 && p <= 1, "dropout: got p = ", p, ", expected 0 to 1");
  auto [x] = kOp.enter(x_);
  check_floating(kOp.name, x);
  Generator& source = generator();
  const uint64_t seed = source.seed, offset = source.take(static_cast<uint64_t>(x.numel()));
  return dropped(kOp, x, {p, seed, offset}, source.advance);
}

}  // namespace binade

// The ops of the lists. They are defined outside the namespace, so that an op without a declaration
// in core/ops/unary.h does not compile.
#define BINADE_DEFINE(name, Functor, saved, code, op_class)                                        \
  binade::Tensor binade::name(const Tensor& x) {                                                   \
    static constexpr Op kOp{#name, OpClass::op_class, detail::has_recorded_gradient(Unary::name)}; \
    return unary(kOp, Unary::name, x);                                                             \
  }
BINADE_UNARY_PLAIN_OPS(BINADE_DEFINE)
#undef BINADE_DEFINE

#define BINADE_DEFINE(name, Functor, saved, code, op_class, option) \
  binade::Tensor binade::name(const Tensor& x, double value) {      \
    static constexpr Op kOp{#name, OpClass::op_class, true};        \
    check_option<kernels::functor::Functor>(#name, #option, value); \
    return unary(kOp, Unary::name, x, value);                       \
  }
BINADE_UNARY_OPTION_OPS(BINADE_DEFINE)
#undef BINADE_DEFINE
