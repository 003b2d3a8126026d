// Sort and topk, whose gradient goes back to the elements' positions; cumulative sums, whose
// gradient is a cumulative sum in the other direction; cumulative products. Medians and quantiles
// take the indices from a sort and read the elements of x there.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/reduced_internal.h>
#include <binade/core/ops/sort.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/sort/cumextreme.h>
#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/cumsum.h>
#include <binade/kernels/sort/logcumsumexp.h>
#include <binade/kernels/sort/sort.h>

#include <cmath>

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

// An element of x may be chosen by several results, whose gradients add up.
ValuesIndices cumulative_extreme(const Op& op, const Tensor& x_, int dim, bool smallest) {
  auto [x] = op.enter(x_);
  check_defined(op.name, x);
  const int d = wrap_dim(op.name, dim, x.dim());
  Tensor values = empty_like(x);
  const Tensor indices = empty_like(x, DType::i64);
  kernels::cumextreme({.x = at_least_1d(x),
                       .values = at_least_1d(values),
                       .indices = at_least_1d(indices),
                       .dim = d,
                       .smallest = smallest});
  values =
      op.record({x}, values, save(indices), [d](const Tensor& dy, const Tensor& indices) -> Grads {
        if (dy.dim() == 0) {
          return {dy};
        }
        return {scatter_add(zeros(dy.sizes(), dy.dtype(), dy.device()), d, indices, dy)};
      });
  return {values, indices};
}

}  // namespace

Tensor detail::record_chosen(const Op& op, const Tensor& x, int dim, const Tensor& values,
                             const Tensor& indices) {
  Tensor y = values;
  return op.record(
      {x}, y, save(indices),
      [op = op.name, dim](const Tensor& dy, Needs needs, const Tensor& indices) -> Grads {
        if (grad_enabled()) {
          const Dims sizes = needs.sizes(0), lines = sizes.empty() ? Dims{1} : sizes;
          const Tensor none = zeros(lines, dy.dtype(), dy.device());
          return {reshape(scatter(none, dim, indices, reshape(dy, indices.sizes())), sizes)};
        }
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
  static constexpr Op kOp{"sort", OpClass::movement, true};
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
  static constexpr Op kOp{"topk", OpClass::movement, true};
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

Tensor logcumsumexp(const Tensor& x_, int dim) {  // dx_i = sum over k >= i of dy_k exp(x_i - y_k)
  static constexpr Op kOp{"logcumsumexp", OpClass::reduction};
  check_floating(kOp.name, x_);
  auto [x] = kOp.enter(x_);
  const int d = wrap_dim(kOp.name, dim, x.dim());
  Tensor y = empty_like(x);
  kernels::logcumsumexp_forward({.x = at_least_1d(x), .y = at_least_1d(y), .dim = d});
  return kOp.record({x}, y, save(x), [d](const Tensor& dy, Needs needs, const Tensor& x) -> Grads {
    Tensor dx = needs.out(0);
    kernels::logcumsumexp_backward(
        {.x = at_least_1d(x), .dy = at_least_1d(dy), .dx = at_least_1d(dx), .dim = d});
    return {dx};
  });
}

ValuesIndices cummax(const Tensor& x, int dim) {
  static constexpr Op kOp{"cummax", OpClass::movement, true};
  return cumulative_extreme(kOp, x, dim, false);
}

ValuesIndices cummin(const Tensor& x, int dim) {
  static constexpr Op kOp{"cummin", OpClass::movement, true};
  return cumulative_extreme(kOp, x, dim, true);
}

Tensor argsort(const Tensor& x, int dim, bool descending) {
  check_defined("argsort", x);
  return sort(x.detach(), wrap_dim("argsort", dim, x.dim()), descending).indices;
}

namespace {

// x, which may be a scalar, as lines of at least one element along dimension d, and the lines in
// order.
struct SortedLines {
  Tensor lines, values, indices;
  int d;

  SortedLines(const char* op, const Tensor& x, int dim)
      : lines(x.dim() == 0 ? reshape(x, {1}) : x), d(wrap_dim(op, dim, x.dim())) {
    check(lines.size(d) > 0, op, ": got shape ", x.sizes(),
          ", expected at least one element to choose from");
    const NoGradGuard guard;
    ValuesIndices all = binade::sort(lines.detach(), d);
    values = std::move(all.values);
    indices = std::move(all.indices);
  }
  // The indices [.., 1, ..] of the elements at this place in the sorted lines.
  Tensor at(int64_t place) const { return narrow(indices, d, place, 1); }
  // bool [.., 1, ..]: true for lines with a NaN, which is then the last element in order.
  Tensor with_nan() const {
    const Tensor last = narrow(values, d, lines.size(d) - 1, 1);
    return ne(last, last);
  }
};

// y [.., 1, ..] as the result of an op on x.
Tensor without_line(const Tensor& y, const Tensor& x, int d, bool keepdim) {
  return x.dim() == 0 ? reshape(y, {}) : keepdim ? y : squeeze(y, d);
}

// The quantile q of each line, [.., 1, ..]. For a line with a NaN it is the last element in order,
// which is a NaN, and the gradient goes to that element, as in PyTorch.
Tensor quantile_of(const SortedLines& sorted, double q) {
  check(q >= 0 && q <= 1, "quantile: got q = ", q, ", expected 0 to 1");
  const double place = q * static_cast<double>(sorted.lines.size(sorted.d) - 1);
  const auto low = static_cast<int64_t>(std::floor(place)),
             high = static_cast<int64_t>(std::ceil(place));
  const Tensor nan = sorted.with_nan(), last = sorted.at(sorted.lines.size(sorted.d) - 1);
  const auto element = [&](int64_t at) {
    return gather(sorted.lines, sorted.d, where(nan, last, sorted.at(at)));
  };
  const Tensor y = element(low);
  return high == low ? y : lerp(y, element(high), place - static_cast<double>(low));
}

SortedLines quantile_lines(const Tensor& x, std::optional<int> dim) {
  check_floating("quantile", x);
  return {"quantile", dim ? x : reshape(x, {-1}), dim.value_or(0)};
}

Tensor finish_quantile(const Tensor& y, const Tensor& x, std::optional<int> dim, bool keepdim) {
  if (!dim) {
    return reshape(y, keepdim ? Dims::of(x.dim(), 1) : Dims{});
  }
  return without_line(y, x, wrap_dim("quantile", *dim, x.dim()), keepdim);
}

}  // namespace

ValuesIndices median(const Tensor& x, int dim, bool keepdim) {
  check_defined("median", x);
  const SortedLines sorted("median", x, dim);
  const int d = sorted.d;
  Tensor indices = sorted.at((sorted.lines.size(d) - 1) / 2);
  if (is_floating(x.dtype())) {  // the first NaN of a line that has one
    const Tensor nan = cast(ne(sorted.values, sorted.values), DType::i32);
    const Tensor first = gather(sorted.indices, d, argmax(nan, d, true));
    indices = where(sorted.with_nan(), first, indices);
  }
  const Tensor values = gather(sorted.lines, d, indices);
  return {without_line(values, x, d, keepdim), without_line(indices, x, d, keepdim)};
}

Tensor median(const Tensor& x) {
  check_defined("median", x);
  return median(reshape(x, {-1}), 0).values;
}

Tensor quantile(const Tensor& x, double q, std::optional<int> dim, bool keepdim) {
  return finish_quantile(quantile_of(quantile_lines(x, dim), q), x, dim, keepdim);
}

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> dim, bool keepdim) {
  check_floating("quantile", x);
  check_floating("quantile", q);
  check(q.dim() == 1 && q.numel() > 0, "quantile: got q of shape ", q.sizes(),
        ", expected one dimension with at least one number");
  const Tensor numbers = q.detach().to(Device{});
  const SortedLines sorted = quantile_lines(x, dim);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < q.numel(); ++i) {
    parts.push_back(finish_quantile(quantile_of(sorted, numbers.at(i)), x, dim, keepdim));
  }
  return stack(parts, 0);
}

Tensor diff(const Tensor& x, int64_t n, int dim) {
  check_floating("diff", x);
  check(x.dim() > 0 && n >= 0, "diff: got shape ", x.sizes(), " and n = ", n,
        ", expected a dimension and n of at least 0");
  const int d = wrap_dim("diff", dim, x.dim());
  Tensor y = x;
  for (int64_t i = 0; i < n && y.size(d) > 0; ++i) {
    y = sub(slice(y, d, 1, y.size(d)), slice(y, d, 0, y.size(d) - 1));
  }
  return y;
}

}  // namespace binade
