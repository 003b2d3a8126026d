// Pointwise ops of three operands that broadcast, and logic. Gradients have the output's sizes; the
// engine sums the broadcast dimensions away. All gradients are made of ops.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/promotion_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/pointwise/ternary.h>

#include <limits>

namespace binade {
namespace {

// Memory for the result: the strides of the first operand that has its sizes, else row-major.
Tensor result_of(const Dims& sizes, std::initializer_list<const Tensor*> operands, DType dtype) {
  for (const Tensor* operand : operands) {
    if (operand->sizes() == sizes) {
      return empty_like(*operand, dtype);
    }
  }
  return empty(sizes, dtype, (*operands.begin())->device());
}

void check_mask(const char* op, const Tensor& mask, const Tensor& x) {
  check_defined(op, mask);
  check_defined(op, x);
  check(mask.dtype() == DType::boolean, op, ": got a condition of dtype ", mask.dtype(),
        ", expected bool; compare with ne(x, 0)");
}

// mask ? x : value, or mask ? value : x.
Tensor choose(const Op& op, const Tensor& mask_, const Tensor& x_, double value, bool x_if_true) {
  auto [mask, x] = op.enter(mask_, x_);
  check_mask(op.name, mask, x);
  check_number(op.name, value, x.dtype());
  const Dims sizes = broadcast_sizes(op.name, mask.sizes(), x.sizes());
  Tensor y = result_of(sizes, {&x, &mask}, x.dtype());
  const View &a = x_if_true ? x.view() : kNoView, &b = x_if_true ? kNoView : x.view();
  kernels::where_forward({.condition = mask, .a = a, .b = b, .y = y, .value = value});
  return op.record({mask, x}, y, save(mask),
                   [x_if_true](const Tensor& dy, const Tensor& mask) -> Grads {
                     return {Tensor(), x_if_true ? where(mask, dy, 0.0) : where(mask, 0.0, dy)};
                   });
}

}  // namespace

Tensor where(const Tensor& condition_, const Tensor& a_, const Tensor& b_) {
  static constexpr Op kOp{"where", OpClass::pointwise, true};
  auto [condition, a, b] = kOp.enter_promoted<1>(condition_, a_, b_);
  check_mask(kOp.name, condition, a);
  const Dims both = broadcast_sizes(kOp.name, a.sizes(), b.sizes());
  const Dims sizes = broadcast_sizes(kOp.name, condition.sizes(), both);
  Tensor y = result_of(sizes, {&a, &b}, a.dtype());
  kernels::where_forward({.condition = condition, .a = a, .b = b, .y = y});
  return kOp.record({condition, a, b}, y, save(condition),
                    [](const Tensor& dy, Needs needs, const Tensor& condition) -> Grads {
                      return {Tensor(), needs[1] ? where(condition, dy, 0.0) : Tensor(),
                              needs[2] ? where(condition, 0.0, dy) : Tensor()};
                    });
}

namespace {

// where() of a tensor and a number, which may change the dtype of x.
Tensor where_number(const Tensor& condition, const Tensor& x, double value, bool x_if_true) {
  static constexpr Op kOp{"where", OpClass::pointwise, true};
  check_defined(kOp.name, x);
  const DType dtype = detail::promoted_dtype(kOp.name, x.dtype(), value);
  return dtype == x.dtype() ? choose(kOp, condition, x, value, x_if_true)
                            : choose(kOp, condition, cast(x, dtype), value, x_if_true);
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  return where_number(condition, a, b, true);
}

Tensor where(const Tensor& condition, double a, const Tensor& b) {
  return where_number(condition, b, a, false);
}

Tensor where(const Tensor& condition, double a, double b) {
  check_defined("where", condition);
  return where_number(condition, full({}, a, DType::f32, condition.device()), b, true);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  static constexpr Op kOp{"masked_fill", OpClass::pointwise, true};
  return choose(kOp, mask, x, value, false);
}

Tensor clamp(const Tensor& x_, const Tensor& low_, const Tensor& high_) {
  static constexpr Op kOp{"clamp", OpClass::pointwise, true};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  check_defined(kOp.name, x_);
  check(low_.defined() || high_.defined(),
        "clamp: got no bound, expected at least one of low and high");
  // An absent bound is the lowest or the largest value of the dtype.
  const auto bound = [&](const Tensor& given, double absent) {
    return given.defined() ? given : full({}, absent, x_.dtype(), x_.device());
  };
  const Tensor lowest = bound(low_, -kInfinity), highest = bound(high_, kInfinity);
  auto [x, low, high] = kOp.enter_promoted(x_, lowest, highest);
  check(x.dtype() != DType::boolean, "clamp: got dtype bool, expected another; convert with to()");
  const Dims both = broadcast_sizes(kOp.name, low.sizes(), high.sizes());
  Tensor y = result_of(broadcast_sizes(kOp.name, x.sizes(), both), {&x, &low, &high}, x.dtype());
  kernels::binary_forward({.op = kernels::Binary::maximum, .a = x, .b = low, .y = y});
  kernels::binary_forward({.op = kernels::Binary::minimum, .a = y, .b = high, .y = y});
  return kOp.record({x, low, high}, y, save(x, low, high),
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& low,
                       const Tensor& high) -> Grads {
                      // Where x equals a bound, each gets half, as in maximum and minimum; if
                      // high < low, the result is high.
                      const auto share = [&](const Tensor& all, const Tensor& half) {
                        return where(all, dy,
                                     where(logical_and(half, lt(low, high)), mul(dy, 0.5), 0.0));
                      };
                      const Tensor at_low = eq(x, low), at_high = eq(x, high);
                      Tensor dx, dlow, dhigh;
                      if (needs[0]) {
                        const Tensor inside = logical_and(gt(x, low), lt(x, high));
                        const Tensor single = logical_and(at_low, at_high);
                        dx = share(logical_or(inside, single), logical_or(at_low, at_high));
                      }
                      if (needs[1]) {
                        dlow = share(logical_and(lt(x, low), le(low, high)), at_low);
                      }
                      if (needs[2]) {
                        dhigh = share(logical_or(gt(x, high), gt(low, high)), at_high);
                      }
                      return {dx, dlow, dhigh};
                    });
}

Tensor lerp(const Tensor& a_, const Tensor& b_, double weight) {  // y = a + weight (b - a)
  static constexpr Op kOp{"lerp", OpClass::pointwise, true};
  auto [a, b] = kOp.enter_promoted(a_, b_);
  check_floating(kOp.name, a);
  Tensor y = result_of(broadcast_sizes(kOp.name, a.sizes(), b.sizes()), {&a, &b}, a.dtype());
  kernels::lerp_forward({.a = a, .b = b, .weight = kNoView, .y = y, .number = weight});
  return kOp.record({a, b}, y, save(), [weight](const Tensor& dy, Needs needs) -> Grads {
    return {needs[0] ? mul(dy, 1 - weight) : Tensor(), needs[1] ? mul(dy, weight) : Tensor()};
  });
}

Tensor lerp(const Tensor& a_, const Tensor& b_, const Tensor& weight_) {
  static constexpr Op kOp{"lerp", OpClass::pointwise, true};
  auto [a, b, weight] = kOp.enter_promoted(a_, b_, weight_);
  check_floating(kOp.name, a);
  const Dims both = broadcast_sizes(kOp.name, a.sizes(), b.sizes());
  const Dims sizes = broadcast_sizes(kOp.name, weight.sizes(), both);
  Tensor y = result_of(sizes, {&a, &b, &weight}, a.dtype());
  kernels::lerp_forward({.a = a, .b = b, .weight = weight, .y = y});
  const bool of_weight = weight.requires_grad(), of_ends = a.requires_grad() || b.requires_grad();
  return kOp.record(
      {a, b, weight}, y, save(when(of_weight, a), when(of_weight, b), when(of_ends, weight)),
      [](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b,
         const Tensor& weight) -> Grads {
        return {needs[0] ? mul(dy, sub(1, weight)) : Tensor(),
                needs[1] ? mul(dy, weight) : Tensor(), needs[2] ? mul(dy, sub(b, a)) : Tensor()};
      });
}

namespace {

Tensor as_mask(const Tensor& x) { return x.dtype() == DType::boolean ? x : ne(x, 0); }

// a ? b : value for logical_and, a ? value : b for logical_or; b is a mask.
Tensor logical(const Op& op, const Tensor& a, const Tensor& b, bool b_if_true) {
  for (const Tensor* x : {&a, &b}) {
    check_defined(op.name, *x);
  }
  auto [x, z] = op.enter(a, b);
  const Tensor condition = as_mask(x.detach()), other = as_mask(z.detach());
  const Dims sizes = broadcast_sizes(op.name, condition.sizes(), other.sizes());
  Tensor y = result_of(sizes, {&condition, &other}, DType::boolean);
  kernels::where_forward({.condition = condition,
                          .a = b_if_true ? other.view() : kNoView,
                          .b = b_if_true ? kNoView : other.view(),
                          .y = y,
                          .value = b_if_true ? 0.0 : 1.0});
  return op.plain({x, z}, y);
}

}  // namespace

Tensor logical_not(const Tensor& x) {
  check_defined("logical_not", x);
  return eq(x.detach(), 0);
}
Tensor logical_and(const Tensor& a, const Tensor& b) {
  static constexpr Op kOp{"logical_and", OpClass::movement};
  return logical(kOp, a, b, true);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  static constexpr Op kOp{"logical_or", OpClass::movement};
  return logical(kOp, a, b, false);
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  check_defined("logical_xor", a);
  check_defined("logical_xor", b);
  check_one_device("logical_xor", {&a, &b});
  static_cast<void>(broadcast_sizes("logical_xor", a.sizes(), b.sizes()));  // names the op
  return ne(as_mask(a.detach()), as_mask(b.detach()));
}

namespace {

void check_masks(const char* name, std::initializer_list<const Tensor*> masks) {
  for (const Tensor* mask : masks) {
    check_defined(name, *mask);
    check(mask->dtype() == DType::boolean, name, ": got dtype ", mask->dtype(),
          ", expected bool; logical_not, logical_and, logical_or and logical_xor take any dtype");
  }
}

}  // namespace

Tensor operator~(const Tensor& mask) {
  check_masks("~", {&mask});
  return logical_not(mask);
}
Tensor operator&(const Tensor& a, const Tensor& b) {
  check_masks("&", {&a, &b});
  return logical_and(a, b);
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  check_masks("|", {&a, &b});
  return logical_or(a, b);
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  check_masks("^", {&a, &b});
  return logical_xor(a, b);
}

}  // namespace binade
