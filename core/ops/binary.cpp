// Pointwise ops of two inputs that broadcast. The gradients have the output's sizes; the engine
// sums the broadcast dimensions away. The rows of the list in kernels/pointwise/pointwise.h define
// most ops; the ops written out here have a backward made of ops.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/promotion_internal.h>
#include <binade/core/ops/detail/recorded_gradients_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade {
namespace {

using kernels::Binary;
using kernels::Compare;
using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);

[[gnu::noinline]] Tensor broadcast_result(const char* op, const Tensor& a, const Tensor& b,
                                          DType dtype) {
  const Dims sizes = broadcast_sizes(op, a.sizes(), b.sizes());
  return a.sizes() == sizes   ? empty_like(a, dtype)
         : b.sizes() == sizes ? empty_like(b, dtype)
                              : empty(sizes, dtype, a.device());
}

// Memory for the result: the strides of the first input that has its sizes, else row-major.
inline Tensor result_of(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  if (a.handle()->view.sizes == b.handle()->view.sizes) [[likely]] {
    return empty_like(a, dtype);
  }
  return broadcast_result(op, a, b, dtype);
}

[[gnu::always_inline]] inline Tensor forward(const Op& op, Binary f, const Tensor& a,
                                             const Tensor& b) {
  const DType dtype = a.handle()->view.dtype;
  const bool any = kernels::takes_integers(f);
  check(is_floating(dtype) || (any && dtype != DType::boolean), op.name, ": got dtype ", dtype,
        ", expected a floating dtype", any ? ", i64, i32 or u8" : "", "; convert with to()");
  Tensor y = result_of(op.name, a, b, dtype);
  kernels::binary_forward(
      {.op = f, .a = a.handle()->view, .b = b.handle()->view, .y = y.handle()->view});
  return y;
}

// Ops whose result for integers is not an integer.
bool divides(Binary f) { return f == Binary::div || f == Binary::atan2; }

// Rejects negative exponents for integers. On a device the host waits for the answer.
void check_exponents(const Tensor& b) {
  check(is_floating(b.dtype()) || b.dtype() == DType::u8 || !any(lt(b, 0)).item(),
        "pow: got negative exponents for integers, expected 0 or more; convert the base with "
        "to(DType::f32)");
}

// Ops whose gradient is a kernel that reads both inputs.
Tensor binary(const Op& op, Binary f, const Tensor& a_, const Tensor& b_) {
  auto [a, b] = op.enter_promoted(a_, b_);
  if (!is_floating(a.dtype()) && divides(f)) [[unlikely]] {
    return binary(op, f, cast(a, DType::f32), cast(b, DType::f32));
  }
  if (f == Binary::pow) [[unlikely]] {
    check_exponents(b);
  }
  Tensor y = forward(op, f, a, b);
  return op.record(
      {a, b}, y, save(a, b),
      [f](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        if (grad_enabled()) {
          return detail::recorded_gradients(f, dy, needs, a, b);
        }
        Tensor da = needs[0] ? empty_like(dy) : Tensor();
        Tensor db = needs[1] ? empty_like(dy) : Tensor();
        kernels::binary_backward({.op = f, .a = a, .b = b, .dy = dy, .da = da, .db = db});
        return {da, db};
      });
}

constexpr Op kEq{"eq", OpClass::pointwise};
constexpr Op kNe{"ne", OpClass::pointwise};
constexpr Op kLt{"lt", OpClass::pointwise};
constexpr Op kLe{"le", OpClass::pointwise};
constexpr Op kGt{"gt", OpClass::pointwise};
constexpr Op kGe{"ge", OpClass::pointwise};

Tensor compare(const Op& op, Compare f, const Tensor& a_, const Tensor& b_) {
  auto [a, b] = op.enter_promoted(a_, b_);
  Tensor y = result_of(op.name, a, b, DType::boolean);
  kernels::compare_forward({.op = f, .a = a, .b = b, .y = y});
  return op.plain({a, b}, y);
}

Tensor compare(const Op& op, Compare f, const Tensor& x_, double value) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  const DType dtype = detail::promoted_dtype(op.name, x.dtype(), value);
  if (dtype != x.dtype()) [[unlikely]] {
    return compare(op, f, cast(x, dtype), value);
  }
  Tensor y = empty_like(x, DType::boolean);
  kernels::compare_forward({.op = f, .a = x, .b = kNoView, .y = y, .number = value});
  return op.plain({x}, y);
}

// Division with a number. Integers are divided by a number other than 0.
Tensor by_number(const char* op, BinaryOp f, const Tensor& x, double value) {
  check_defined(op, x);
  check(value != 0 || is_floating(x.dtype()), op, ": got the divisor 0 for a tensor of dtype ",
        x.dtype(), ", expected another number; floating dtypes divide by 0");
  const auto [a, b] = detail::with_number(op, x, value);
  return f(a, b);
}

}  // namespace

Tensor add(const Tensor& a_, const Tensor& b_) {  // y = a + b
  static constexpr Op kOp{"add", OpClass::pointwise, true};
  auto [a, b] = kOp.enter_promoted(a_, b_);
  Tensor y = forward(kOp, Binary::add, a, b);
  return kOp.record({a, b}, y, save(), [](const Tensor& dy) -> Grads { return {dy, dy}; });
}

Tensor sub(const Tensor& a_, const Tensor& b_) {  // y = a - b
  static constexpr Op kOp{"sub", OpClass::pointwise, true};
  auto [a, b] = kOp.enter_promoted(a_, b_);
  Tensor y = forward(kOp, Binary::sub, a, b);
  return kOp.record({a, b}, y, save(), [](const Tensor& dy, Needs needs) -> Grads {
    return {dy, needs[1] ? neg(dy) : Tensor()};
  });
}

Tensor mul(const Tensor& a_, const Tensor& b_) {  // y = a b, da = dy b, db = dy a
  static constexpr Op kOp{"mul", OpClass::pointwise, true};
  auto [a, b] = kOp.enter_promoted(a_, b_);
  Tensor y = forward(kOp, Binary::mul, a, b);
  return kOp.record({a, b}, y, save(when(b.requires_grad(), a), when(a.requires_grad(), b)),
                    [](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
                      return {needs[0] ? mul(dy, b) : Tensor(), needs[1] ? mul(dy, a) : Tensor()};
                    });
}

Tensor eq(const Tensor& a, const Tensor& b) { return compare(kEq, Compare::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare(kNe, Compare::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare(kLt, Compare::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare(kLe, Compare::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare(kGt, Compare::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare(kGe, Compare::ge, a, b); }

Tensor eq(const Tensor& x, double value) { return compare(kEq, Compare::eq, x, value); }
Tensor ne(const Tensor& x, double value) { return compare(kNe, Compare::ne, x, value); }
Tensor lt(const Tensor& x, double value) { return compare(kLt, Compare::lt, x, value); }
Tensor le(const Tensor& x, double value) { return compare(kLe, Compare::le, x, value); }
Tensor gt(const Tensor& x, double value) { return compare(kGt, Compare::gt, x, value); }
Tensor ge(const Tensor& x, double value) { return compare(kGe, Compare::ge, x, value); }

Tensor floor_divide(const Tensor& x, double value) {
  return by_number("floor_divide", floor_divide, x, value);
}
Tensor remainder(const Tensor& x, double value) {
  return by_number("remainder", remainder, x, value);
}
Tensor fmod(const Tensor& x, double value) { return by_number("fmod", fmod, x, value); }

Tensor isclose(const Tensor& a_, const Tensor& b_, double rtol, double atol, bool equal_nan) {
  static constexpr Op kOp{"isclose", OpClass::pointwise};
  check(rtol >= 0 && atol >= 0, "isclose: got rtol = ", rtol, " and atol = ", atol,
        ", expected 0 or more");
  auto [x, z] = kOp.enter_promoted(a_, b_);
  static_cast<void>(broadcast_sizes(kOp.name, x.sizes(), z.sizes()));  // names the op
  const NoGradGuard no_grad;
  const PrecisionScope full{Precision::full()};
  // f16 and bf16 would round the difference and the tolerance.
  const DType dtype = is_floating(x.dtype()) ? compute_dtype(x.dtype()) : DType::f64;
  const Tensor a = cast(x, dtype), b = cast(z, dtype);
  const Tensor off = abs(sub(a, b)), allowed = add(mul(abs(b), rtol), atol);
  Tensor y = logical_or(eq(x, z), logical_and(le(off, allowed), isfinite(off)));
  if (equal_nan) {
    y = logical_or(y, logical_and(isnan(a), isnan(b)));
  }
  return kOp.plain({x, z}, y);
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan)).item() != 0;
}

bool equal(const Tensor& a, const Tensor& b) {
  check_defined("equal", a);
  check_defined("equal", b);
  const PrecisionScope full{Precision::full()};
  return a.sizes() == b.sizes() && all(eq(a, b)).item() != 0;
}

}  // namespace binade

// The ops of the list. They are defined outside the namespace, so that an op without a declaration
// in core/ops/binary.h does not compile.
#define BINADE_DEFINE(name, Functor, dtypes, op_class)            \
  binade::Tensor binade::name(const Tensor& a, const Tensor& b) { \
    static constexpr Op kOp{#name, OpClass::op_class, true};      \
    return binary(kOp, Binary::name, a, b);                       \
  }
BINADE_BINARY_PLAIN_OPS(BINADE_DEFINE)
#undef BINADE_DEFINE
