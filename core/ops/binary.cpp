// Pointwise ops of two inputs that broadcast. The gradients have the output's sizes; the engine
// sums the broadcast dimensions away. The rows of the list in kernels/pointwise/pointwise.h define
// most ops; the ops written out here have a backward made of ops.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/kernels/pointwise/pointwise.h>

namespace binade {
namespace {

using kernels::Binary;
using kernels::Compare;

void check_inputs(const char* op, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), op, ": got an undefined tensor");
  check(a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected equal ones; convert one with to()");
  check(a.device() == b.device(), op, ": got devices ", a.device(), " and ", b.device());
}

// Memory for the result: the strides of the first input that has its sizes, else row-major.
Tensor result_of(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  if (a.sizes() == b.sizes()) [[likely]] {
    return empty_like(a, dtype);
  }
  const Dims sizes = broadcast_sizes(op, a.sizes(), b.sizes());
  return a.sizes() == sizes   ? empty_like(a, dtype)
         : b.sizes() == sizes ? empty_like(b, dtype)
                              : empty(sizes, dtype, a.device());
}

Tensor forward(const Op& op, Binary f, const Tensor& a, const Tensor& b) {
  check_inputs(op.name, a, b);
  const DType dtype = a.dtype();
  const bool any = kernels::takes_integers(f);
  check(is_floating(dtype) || (any && (dtype == DType::i64 || dtype == DType::i32)), op.name,
        ": got dtype ", dtype, ", expected a floating dtype", any ? ", i64 or i32" : "",
        "; convert with to()");
  Tensor y = result_of(op.name, a, b, dtype);
  kernels::binary_forward({.op = f, .a = a, .b = b, .y = y});
  return y;
}

// Ops whose gradient is a kernel that reads both inputs.
Tensor binary(const Op& op, Binary f, const Tensor& a_, const Tensor& b_) {
  auto [a, b] = op.enter(a_, b_);
  Tensor y = forward(op, f, a, b);
  return op.record(
      {a, b}, y, save(a, b),
      [f](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
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
  auto [a, b] = op.enter(a_, b_);
  check_inputs(op.name, a, b);
  Tensor y = result_of(op.name, a, b, DType::boolean);
  kernels::compare_forward({.op = f, .a = a, .b = b, .y = y});
  return op.plain({a, b}, y);
}

Tensor compare(const Op& op, Compare f, const Tensor& x_, double value) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  check_number(op.name, value, x.dtype());
  Tensor y = empty_like(x, DType::boolean);
  kernels::compare_forward({.op = f, .a = x, .b = kNoView, .y = y, .number = value});
  return op.plain({x}, y);
}

}  // namespace

Tensor add(const Tensor& a_, const Tensor& b_) {  // y = a + b
  static constexpr Op kOp{"add", OpClass::pointwise, true};
  auto [a, b] = kOp.enter(a_, b_);
  Tensor y = forward(kOp, Binary::add, a, b);
  return kOp.record({a, b}, y, save(), [](const Tensor& dy) -> Grads { return {dy, dy}; });
}

Tensor sub(const Tensor& a_, const Tensor& b_) {  // y = a - b
  static constexpr Op kOp{"sub", OpClass::pointwise, true};
  auto [a, b] = kOp.enter(a_, b_);
  Tensor y = forward(kOp, Binary::sub, a, b);
  return kOp.record({a, b}, y, save(), [](const Tensor& dy, Needs needs) -> Grads {
    return {dy, needs[1] ? neg(dy) : Tensor()};
  });
}

Tensor mul(const Tensor& a_, const Tensor& b_) {  // y = a b, da = dy b, db = dy a
  static constexpr Op kOp{"mul", OpClass::pointwise, true};
  auto [a, b] = kOp.enter(a_, b_);
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

}  // namespace binade

// The ops of the list. They are defined outside the namespace, so that an op without a declaration
// in core/ops/binary.h does not compile.
#define BINADE_DEFINE(name, Functor, dtypes, op_class)            \
  binade::Tensor binade::name(const Tensor& a, const Tensor& b) { \
    static constexpr Op kOp{#name, OpClass::op_class};            \
    return binary(kOp, Binary::name, a, b);                       \
  }
BINADE_BINARY_PLAIN_OPS(BINADE_DEFINE)
#undef BINADE_DEFINE
