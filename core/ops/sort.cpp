// Sort and topk, whose gradient goes back to the elements' positions; cumulative sums, whose
// gradient is a cumulative sum in the other direction; cumulative products.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/reduced_internal.h>
#include <binade/core/ops/sort.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/cumsum.h>
#include <binade/kernels/sort/sort.h>

namespace binade {
namespace {

using detail::at_least_1d;

// The elements of x that indices [.., k, ..] chose along dim, as results.
ValuesIndices results(const Op& op, const Tensor& x, int dim, const Tensor& values,
                      const Tensor& indices) {
  // topk of a scalar may choose nothing, which has no scalar shape.
  const bool scalar = x.dim() == 0 && indices.numel() == 1;
  const auto shown = [&](const Tensor& y) { return scalar ? make_view(y, {}, {}) : y; };
  return {detail::record_chosen(op, x, dim, shown(values), indices), shown(indices)};
}

// y_i = sum of x_j for j <= i, or j >= i in reverse; dx is the same sum of dy in the other
// direction.
Tensor cumulative_sum(const Tensor& x_, int dim, bool reverse) {
  static constexpr Op kOp{"cumsum", OpClass::reduction, true};
  check_defined("cumsum", x_);
  if (!is_floating(x_.dtype()) && x_.dtype() != DType::i64) {  // integers and bool count in i64
    return cumulative_sum(cast(x_, DType::i64), dim, reverse);
  }
  auto [x] = kOp.enter(x_);
  const int d = wrap_dim("cumsum", dim, x.dim());
  Tensor y = empty_like(x);
  kernels::cumsum({.x = at_least_1d(x), .y = at_least_1d(y), .dim = d, .reverse = reverse});
  return kOp.record({x}, y, save(), [d, reverse](const Tensor& dy) -> Grads {
    return {cumulative_sum(dy, d, !reverse)};
  });
}

}  // namespace

Tensor detail::record_chosen(const Op& op, const Tensor& x, int dim, const Tensor& values,
                             const Tensor& indices) {
  Tensor y = values;
  return op.record(
      {x}, y, save(indices),
      [op = op.name, dim](const Tensor& dy, Needs needs, const Tensor& indices) -> Grads {
        Tensor dx = needs.out(0);
        if (dx.numel() != indices.numel()) {
          kernels::fill({.y = dx, .value = 0});
        }
        kernels::scatter({.op = op,
                          .index = indices,
                          .src = reshape(dy, indices.sizes()),
                          .y = at_least_1d(dx),
                          .dim = dim,
                          .distinct = true});
        return {dx};
      });
}

ValuesIndices sort(const Tensor& x_, int dim, bool descending) {
  static constexpr Op kOp{"sort", OpClass::movement};
  auto [x] = kOp.enter(x_);
  check_defined("sort", x);
  const int d = wrap_dim("sort", dim, x.dim());
  const Tensor lines = at_least_1d(x);
  Tensor values = empty_like(lines), indices = empty_like(lines, DType::i64);
  kernels::sort(
      {.x = lines, .values = values, .indices = indices, .dim = d, .descending = descending});
  return results(kOp, x, d, values, indices);
}

ValuesIndices topk(const Tensor& x_, int64_t k, int dim, bool largest) {
  static constexpr Op kOp{"topk", OpClass::movement};
  auto [x] = kOp.enter(x_);
  check_defined("topk", x);
  const int d = wrap_dim("topk", dim, x.dim());
  const Tensor lines = at_least_1d(x);
  check(k >= 0 && k <= lines.size(d), "topk: got k = ", k, ", expected 0 to ", lines.size(d),
        ", the size of dimension ", dim, " of ", x.sizes());
  Dims sizes = lines.sizes();
  sizes[d] = k;
  Tensor values = empty(sizes, x.dtype(), x.device()),
         indices = empty(sizes, DType::i64, x.device());
  kernels::topk({.x = lines, .values = values, .indices = indices, .dim = d, .largest = largest});
  return results(kOp, x, d, values, indices);
}

Tensor cumsum(const Tensor& x, int dim) { return cumulative_sum(x, dim, false); }

Tensor cumprod(const Tensor& x_,
               int dim) {  // dx_k = x_0 ... x_{k-1} (dy_k + x_{k+1} (dy_{k+1} + ...))
  static constexpr Op kOp{"cumprod", OpClass::reduction};
  auto [x] = kOp.enter(x_);
  check_defined(kOp.name, x);
  check(is_floating(x.dtype()) || x.dtype() == DType::i64 || x.dtype() == DType::i32,
        "cumprod: got dtype ", x.dtype(),
        ", expected a floating dtype, i64 or i32; convert with to()");
  const int d = wrap_dim(kOp.name, dim, x.dim());
  Tensor y = empty_like(x);
  kernels::cumprod_forward({.x = at_least_1d(x), .y = at_least_1d(y), .dim = d});
  return kOp.record({x}, y, save(x), [d](const Tensor& dy, Needs needs, const Tensor& x) -> Grads {
    if (at_least_1d(x).size(d) == 1) {  // nothing else, whatever x is
      return {dy};
    }
    Tensor dx = needs.out(0);
    kernels::cumprod_backward(
        {.x = at_least_1d(x), .dy = at_least_1d(dy), .dx = at_least_1d(dx), .dim = d});
    return {dx};
  });
}

}  // namespace binade
