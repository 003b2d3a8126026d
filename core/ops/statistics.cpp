// Variance, norms, products and logsumexp. Their kernels give the result in the compute dtype,
// which the gradient uses: it has the form dx = f(x, a, b) with a and b per result (ReduceSlope).
#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/checks.h>
#include <binade/core/ops/reduce.h>
#include <binade/core/ops/reduced.h>
#include <binade/kernels/reduce.h>

#include <cmath>

namespace binade {
namespace {

using detail::finish_reduction;
using detail::kept_sizes;
using kernels::Reduce;
using kernels::ReduceSlope;

// Memory for what a reduction of x to these sizes keeps in the compute dtype.
Tensor wide_result(const Tensor& x, const Dims& kept) {
  return empty(kept, compute_dtype(x.dtype()), x.device());
}

// dy for results [.., 1, ..] in the dtype of y.
Tensor wide_gradient(const Tensor& dy, const Tensor& y) {
  return cast(reshape(dy, y.sizes()), y.dtype());
}

// a / y, and 0 where y is 0.
Tensor quotient_or_zero(const Tensor& a, const Tensor& y) {
  Tensor q = empty_like(y);
  kernels::reduce_backward({.op = ReduceSlope::quotient, .x = y, .a = a, .b = kNoView, .dx = q});
  return q;
}

Tensor slope(const Needs& needs, ReduceSlope op, const Tensor& x, const Tensor& a,
             const Tensor& b) {
  Tensor dx = needs.out_like(0, x);
  kernels::reduce_backward({.op = op, .x = x, .a = a, .b = b, .dx = dx});
  return dx;
}

// y = sum (x - mean)^2 / (n - c), dx = dy 2 (x - mean) / (n - c); of the root dx = dy (x - mean) /
// ((n - c) y)
Tensor spread(const Op& op, Reduce kind, const Tensor& x_, const Dims& dims, bool unbiased,
              bool keepdim) {
  auto [x] = op.enter(x_);
  check_floating(op.name, x);
  const Dims kept = kept_sizes(op.name, x, dims);
  Tensor y = wide_result(x, kept), mean = wide_result(x, kept);
  const double correction = unbiased ? 1 : 0;
  kernels::reduce_forward({.op = kind, .x = x, .y = y, .aux = mean, .correction = correction});
  Tensor result = finish_reduction(op.name, x, y, dims, keepdim);
  const double divisor =
      std::fmax(0, static_cast<double>(x.numel()) / static_cast<double>(y.numel()) - correction);
  const bool root = kind == Reduce::std;
  return op.record(
      {x}, result, save(x, mean, y),
      [root, divisor](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& mean,
                      const Tensor& y) -> Grads {
        Tensor a = mul(wide_gradient(dy, y), (root ? 1 : 2) / divisor);
        return {slope(needs, ReduceSlope::deviation, x, root ? quotient_or_zero(a, y) : a, mean)};
      });
}

// dx = dy sign(x), dy x / y, or dy sign(x) / count where |x| = y
Tensor norm_gradient(const Needs& needs, Reduce kind, const Tensor& dy, const Tensor& x,
                     const Tensor& y, const Tensor& count) {
  const Tensor g = wide_gradient(dy, y);
  switch (kind) {
    case Reduce::norm1: return slope(needs, ReduceSlope::sign, x, g, {});
    case Reduce::norm2: return slope(needs, ReduceSlope::deviation, x, quotient_or_zero(g, y), {});
    default: return slope(needs, ReduceSlope::equal_abs, x, div(g, count), y);
  }
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, bool unbiased, bool keepdim) {
  static constexpr Op kOp{"var", OpClass::reduction};
  return spread(kOp, Reduce::var, x, dims, unbiased, keepdim);
}

Tensor std(const Tensor& x, const Dims& dims, bool unbiased, bool keepdim) {
  static constexpr Op kOp{"std", OpClass::reduction};
  return spread(kOp, Reduce::std, x, dims, unbiased, keepdim);
}

Tensor norm(const Tensor& x_, double p, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"norm", OpClass::reduction};
  auto [x] = kOp.enter(x_);
  check_floating("norm", x);
  check(p == 1 || p == 2 || (std::isinf(p) && p > 0), "norm: got p = ", p,
        ", expected 1, 2 or infinity");
  const Reduce kind = p == 1 ? Reduce::norm1 : p == 2 ? Reduce::norm2 : Reduce::norm_inf;
  const Dims kept = kept_sizes("norm", x, dims);
  check(kind != Reduce::norm_inf || x.numel() > 0 || element_count(kept) == 0, "norm: got shape ",
        x.sizes(), ", expected at least one element for p = infinity");
  Tensor y = wide_result(x, kept);
  Tensor count = kind == Reduce::norm_inf ? wide_result(x, kept) : Tensor();
  kernels::reduce_forward({.op = kind, .x = x, .y = y, .aux = count});
  Tensor result = finish_reduction("norm", x, y, dims, keepdim);
  return kOp.record({x}, result, save(x, y, count),
                    [kind](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y,
                           const Tensor& count) -> Grads {
                      return {norm_gradient(needs, kind, dy, x, y, count)};
                    });
}

Tensor prod(const Tensor& x_, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"prod", OpClass::reduction};
  auto [x] = kOp.enter(x_);
  check_defined("prod", x);
  check(is_floating(x.dtype()) || x.dtype() == DType::i64 || x.dtype() == DType::i32,
        "prod: got dtype ", x.dtype(),
        ", expected a floating dtype, i64 or i32; convert with to()");
  const Dims kept = kept_sizes("prod", x, dims);
  const bool graph = x.requires_grad() && grad_enabled();
  Tensor y = is_floating(x.dtype()) ? wide_result(x, kept) : empty(kept, x.dtype(), x.device());
  Tensor others = graph ? wide_result(x, kept) : Tensor();  // the derivative at a single zero
  kernels::reduce_forward({.op = Reduce::prod, .x = x, .y = y, .aux = others});
  Tensor result = finish_reduction("prod", x, y, dims, keepdim);
  return kOp.record({x}, result, save(x, y, others),  // dx = dy y / x
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y,
                       const Tensor& others) -> Grads {
                      const Tensor g = wide_gradient(dy, y);
                      return {slope(needs, ReduceSlope::quotient, x, mul(g, y), mul(g, others))};
                    });
}

Tensor logsumexp(const Tensor& x_, const Dims& dims, bool keepdim) {  // y = log(sum exp(x))
  static constexpr Op kOp{"logsumexp", OpClass::reduction};
  auto [x] = kOp.enter(x_);
  check_floating("logsumexp", x);
  const Dims kept = kept_sizes("logsumexp", x, dims);
  Tensor y = wide_result(x, kept);
  kernels::reduce_forward({.op = Reduce::logsumexp, .x = x, .y = y});
  Tensor result = finish_reduction("logsumexp", x, y, dims, keepdim);
  return kOp.record({x}, result, save(x, y),
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y) -> Grads {
                      return {slope(needs, ReduceSlope::exponential, x, wide_gradient(dy, y),
                                    y)};  // dy exp(x - y)
                    });
}

}  // namespace binade
