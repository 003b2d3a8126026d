// Variance, norms, distances, products and logsumexp. Their kernels give the result in the compute
// dtype, and the gradient uses that result. The gradient has the form dx = f(x, a, b) with a and b
// per result (ReduceSlope).
#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/reduced_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/reduce/cosine_similarity.h>
#include <binade/kernels/reduce/reduce.h>

#include <algorithm>
#include <cmath>

namespace binade {
namespace {

using detail::finish_reduction;
using detail::kept_sizes;
using kernels::Binary;
using kernels::Reduce;
using kernels::ReduceSlope;
using kernels::Unary;

// Memory in the compute dtype for a reduction of x to these sizes.
Tensor wide_result(const Tensor& x, const Dims& kept) {
  return empty(kept, compute_dtype(x.dtype()), x.device());
}

// dy for results [.., 1, ..] in the dtype of y.
Tensor wide_gradient(const Tensor& dy, const Tensor& y) {
  return cast(reshape(dy, y.sizes()), y.dtype());
}

Tensor slope(const Needs& needs, ReduceSlope op, const Tensor& x, const Tensor& a,
             const Tensor& b) {
  Tensor dx = needs.out_like(0, x);
  kernels::reduce_backward({.op = op, .x = x, .a = a, .b = b, .dx = dx});
  return dx;
}

// dx = a ((x - mean) / y), in this order so that a small y causes no overflow.
Tensor std_gradient(const Needs& needs, const Tensor& x, const Tensor& a, const Tensor& mean,
                    const Tensor& y) {
  Tensor d = wide_result(x, x.sizes());
  const Tensor wide = cast(x, d.dtype()), one = full({}, 1, d.dtype(), x.device());
  kernels::reduce_backward({.op = ReduceSlope::deviation, .x = wide, .a = one, .b = mean, .dx = d});
  if (d.dtype() == x.dtype()) {
    return slope(needs, ReduceSlope::direction, d, a, y);
  }
  kernels::reduce_backward({.op = ReduceSlope::direction, .x = d, .a = a, .b = y, .dx = d});
  return cast(d, x.dtype());
}

// The recorded_ functions give the same gradients as ops, for a backward that is itself recorded.
// They compute y again from x, so that it has its history.
Tensor recorded_spread_gradient(bool root, double divisor, const Tensor& g, const Tensor& x_) {
  const Tensor x = cast(x_, g.dtype());
  const double count = static_cast<double>(x.numel()) / static_cast<double>(g.numel());
  const Tensor d = sub(x, div(sum_to(x, g.sizes()), count));
  if (!root) {
    return cast(mul(d, mul(g, 2 / divisor)), x_.dtype());
  }
  const Tensor variance = div(sum_to(square(d), g.sizes()), divisor), none = eq(variance, 0);
  const Tensor y = sqrt(masked_fill(variance, none, 1));
  return cast(mul(d, masked_fill(div(g, mul(y, divisor)), none, 0)), x_.dtype());
}

// y = sum (x - mean)^2 / (n - c), dx = dy 2 (x - mean) / (n - c); for the root dx = dy (x - mean) /
// ((n - c) y)
Tensor spread(const Op& op, Reduce kind, const Tensor& x_, const Dims& dims, bool unbiased,
              bool keepdim) {
  auto [x] = op.enter(x_);
  check_floating(op.name, x);
  const Dims kept = kept_sizes(op.name, x, dims);
  Tensor y = wide_result(x, kept);
  Tensor mean = empty(kept, kernels::aux_dtype(kind, x.dtype()), x.device());
  const double correction = unbiased ? 1 : 0;
  kernels::reduce_forward({.op = kind, .x = x, .y = y, .aux = mean, .correction = correction});
  Tensor result = finish_reduction(op.name, x, y, dims, keepdim);
  const double divisor =
      std::fmax(0, static_cast<double>(x.numel()) / static_cast<double>(y.numel()) - correction);
  const bool root = kind == Reduce::std;
  return op.record({x}, result, save(x, mean, y),
                   [root, divisor](const Tensor& dy, Needs needs, const Tensor& x,
                                   const Tensor& mean, const Tensor& y) -> Grads {
                     if (grad_enabled()) {
                       return {recorded_spread_gradient(root, divisor, wide_gradient(dy, y), x)};
                     }
                     const Tensor a = mul(wide_gradient(dy, y), (root ? 1 : 2) / divisor);
                     return {root ? std_gradient(needs, x, a, mean, y)
                                  : slope(needs, ReduceSlope::deviation, x, a, mean)};
                   });
}

// |x| in the compute dtype.
Tensor magnitude(const Tensor& x) {
  Tensor a = wide_result(x, x.sizes());
  kernels::copy({.x = x, .y = a});
  kernels::unary_forward({.op = Unary::abs, .x = a, .y = a});
  return a;
}

// y = the number of elements that are not 0.
void count_nonzero(const Tensor& x, const Tensor& y) {
  Tensor mask = empty(x.sizes(), DType::boolean, x.device()), ones = wide_result(x, x.sizes());
  const Tensor zero = zeros({}, x.dtype(), x.device());
  kernels::compare_forward({.op = kernels::Compare::ne, .a = x, .b = zero, .y = mask});
  kernels::copy({.x = mask, .y = ones});
  kernels::reduce_forward({.op = Reduce::sum, .x = ones, .y = y});
}

// y = m (sum (|x| / m)^p)^(1/p), where m is the largest |x| (for p < 0 the smallest), so powers
// neither overflow nor underflow.
void power_norm(const Tensor& x, double p, const Tensor& y) {
  if (x.numel() == 0) {
    kernels::fill({.y = y, .value = 0});
    return;
  }
  const Tensor a = magnitude(x), m = empty_like(y);
  const bool wide = y.dtype() == DType::f64;
  kernels::reduce_forward({.op = p > 0 ? Reduce::max : Reduce::min, .x = a, .y = m});
  kernels::unary_forward({.op = Unary::clamp,
                          .x = m,
                          .y = m,
                          .alpha = wide ? 0x1p-1022 : 0x1p-126,
                          .beta = wide ? 0x1.fffffffffffffp1023 : 0x1.fffffep127});
  kernels::binary_forward({.op = Binary::div, .a = a, .b = m, .y = a});
  kernels::unary_forward({.op = Unary::pow_scalar, .x = a, .y = a, .alpha = p});
  kernels::reduce_forward({.op = Reduce::sum, .x = a, .y = y});
  kernels::unary_forward({.op = Unary::pow_scalar, .x = y, .y = y, .alpha = 1 / p});
  kernels::binary_forward({.op = Binary::mul, .a = y, .b = m, .y = y});
}

// y = norm of order p. For infinite p, `count` gets the number of elements with that magnitude.
void norm_forward(const Tensor& x, double p, const Tensor& y, const Tensor& count) {
  if (p == 0) {
    count_nonzero(x, y);
  } else if (p == 1 || p == 2) {
    kernels::reduce_forward({.op = p == 1 ? Reduce::norm1 : Reduce::norm2, .x = x, .y = y});
  } else if (std::isinf(p)) {
    kernels::reduce_forward({.op = p > 0 ? Reduce::norm_inf : Reduce::min,
                             .x = p > 0 ? x : magnitude(x),
                             .y = y,
                             .aux = count});
  } else {
    power_norm(x, p, y);
  }
}

// dx = dy sign(x) / count where |x| = y for infinite p; else dy sign(x) (|x| / y)^(p - 1), and 0
// where x is 0. sign(x) is x / |x|.
Tensor norm_gradient(const Needs& needs, double p, const Tensor& dy, const Tensor& x,
                     const Tensor& y, const Tensor& count) {
  const Tensor g = wide_gradient(dy, y);
  if (std::isinf(p)) {
    return slope(needs, ReduceSlope::equal_abs, x, div(g, count), y);
  }
  if (p == 0) {
    Tensor dx = needs.out_like(0, x);
    kernels::fill({.y = dx, .value = 0});
    return dx;
  }
  if (p == 1) {
    return slope(needs, ReduceSlope::sign, x, g, {});
  }
  if (p == 2) {
    return slope(needs, ReduceSlope::direction, x, g, y);
  }
  const Tensor a = magnitude(x);
  return slope(needs, ReduceSlope::direction, x, mul(pow(div(a, y), p - 1), g), a);
}

Tensor recorded_norm_gradient(double p, const Tensor& g, const Tensor& x_, const Tensor& y,
                              const Tensor& count) {
  const Tensor x = cast(x_, g.dtype());
  if (p == 0) {
    return zeros_like(x_);
  }
  if (p == 1) {
    return cast(mul(sign(x), g), x_.dtype());
  }
  if (std::isinf(p)) {
    return cast(where(eq(abs(x), y), mul(sign(x), div(g, count)), 0), x_.dtype());
  }
  const Tensor flat = eq(x, 0), none = eq(y, 0);
  if (p == 2) {  // y 0: the slope counts as 0
    const Tensor again = sqrt(masked_fill(sum_to(square(x), y.sizes()), none, 1));
    return cast(mul(x, masked_fill(div(g, again), none, 0)), x_.dtype());
  }
  const Tensor a = masked_fill(abs(x), flat, 1), powers = masked_fill(pow(a, p), flat, 0);
  const Tensor again = pow(masked_fill(sum_to(powers, y.sizes()), none, 1), 1 / p);
  const Tensor slope = mul(sign(x), pow(div(a, again), p - 1));
  return cast(masked_fill(mul(slope, g), flat, 0), x_.dtype());
}

// dx = dy exp(x - y) as a share of the sum; the largest x needs no history.
Tensor recorded_logsumexp_gradient(const Tensor& g, const Tensor& x_, const Tensor& y) {
  const Tensor x = cast(x_, g.dtype()), shift = nan_to_num(y.detach());
  const Tensor e = exp(sub(x, shift));
  return cast(mul(e, div(g, sum_to(e, g.sizes()))), x_.dtype());
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, bool unbiased, bool keepdim) {
  static constexpr Op kOp{"var", OpClass::reduction, true};
  return spread(kOp, Reduce::var, x, dims, unbiased, keepdim);
}

Tensor std(const Tensor& x, const Dims& dims, bool unbiased, bool keepdim) {
  static constexpr Op kOp{"std", OpClass::reduction, true};
  return spread(kOp, Reduce::std, x, dims, unbiased, keepdim);
}

Tensor norm(const Tensor& x_, double p, const Dims& dims, bool keepdim) {
  static constexpr Op kOp{"norm", OpClass::reduction, true};
  auto [x] = kOp.enter(x_);
  check_floating("norm", x);
  check(p == p, "norm: got p = nan, expected a number or an infinity");
  const Dims kept = kept_sizes("norm", x, dims);
  check((p >= 0 && !std::isinf(p)) || x.numel() > 0 || element_count(kept) == 0, "norm: got shape ",
        x.sizes(), ", expected at least one element for p = ", p);
  Tensor y = wide_result(x, kept);
  Tensor count = std::isinf(p) ? wide_result(x, kept) : Tensor();
  norm_forward(x, p, y, count);
  Tensor result = finish_reduction("norm", x, y, dims, keepdim);
  return kOp.record({x}, result, save(x, y, count),
                    [p](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y,
                        const Tensor& count) -> Grads {
                      return {grad_enabled()
                                  ? recorded_norm_gradient(p, wide_gradient(dy, y), x, y, count)
                                  : norm_gradient(needs, p, dy, x, y, count)};
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
                      if (x.numel() == y.numel()) {  // nothing else, whatever x is
                        return {reshape(dy, x.sizes())};
                      }
                      return {slope(needs, ReduceSlope::quotient, x, mul(g, y), mul(g, others))};
                    });
}

Tensor logsumexp(const Tensor& x_, const Dims& dims, bool keepdim) {  // y = log(sum exp(x))
  static constexpr Op kOp{"logsumexp", OpClass::reduction, true};
  auto [x] = kOp.enter(x_);
  check_floating("logsumexp", x);
  const Dims kept = kept_sizes("logsumexp", x, dims);
  Tensor y = wide_result(x, kept);
  kernels::reduce_forward({.op = Reduce::logsumexp, .x = x, .y = y});
  Tensor result = finish_reduction("logsumexp", x, y, dims, keepdim);
  return kOp.record({x}, result, save(x, y),
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& y) -> Grads {
                      if (grad_enabled()) {
                        return {recorded_logsumexp_gradient(wide_gradient(dy, y), x, y)};
                      }
                      return {slope(needs, ReduceSlope::exponential, x, wide_gradient(dy, y),
                                    y)};  // dy exp(x - y)
                    });
}

Tensor cosine_similarity(const Tensor& a_, const Tensor& b_, int dim, double eps) {
  static constexpr Op kOp{"cosine_similarity", OpClass::loss};
  auto [a, b] = kOp.enter(a_, b_);
  check_floating("cosine_similarity", a);
  check_floating("cosine_similarity", b);
  check(a.dtype() == b.dtype(), "cosine_similarity: got dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected equal ones; convert one with to()");
  check(eps > 0, "cosine_similarity: got eps ", eps, ", expected more than 0");
  const Dims sizes = broadcast_sizes("cosine_similarity", a.sizes(), b.sizes());
  check(!sizes.empty(), "cosine_similarity: got scalars, expected at least one dimension");
  const int d = wrap_dim("cosine_similarity", dim, sizes.size());
  Dims kept;
  for (int i = 0; i < sizes.size(); ++i) {
    if (i != d) {
      kept.push_back(sizes[i]);
    }
  }
  Tensor y = empty(kept, compute_dtype(a.dtype()), a.device());
  Tensor inverse1 = empty_like(y), inverse2 = empty_like(y);
  kernels::cosine_similarity_forward({.x1 = broadcast_view(a, sizes),
                                      .x2 = broadcast_view(b, sizes),
                                      .y = y,
                                      .inverse1 = inverse1,
                                      .inverse2 = inverse2,
                                      .dim = d,
                                      .eps = eps});
  const Tensor saved_y = y.detach();
  return kOp.record(
      {a, b}, y, save(a, b, saved_y, inverse1, inverse2),
      [sizes, d](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b, const Tensor& y,
                 const Tensor& inverse1, const Tensor& inverse2) -> Grads {
        const auto memory = [&](int i, const Tensor& like) {
          return !needs[i]               ? Tensor()
                 : like.sizes() == sizes ? needs.out_like(i, like)
                                         : empty(sizes, like.dtype(), like.device());
        };
        Tensor da = memory(0, a), db = memory(1, b);
        kernels::cosine_similarity_backward({.x1 = broadcast_view(a, sizes),
                                             .x2 = broadcast_view(b, sizes),
                                             .y = y,
                                             .inverse1 = inverse1,
                                             .inverse2 = inverse2,
                                             .dy = contiguous(dy),
                                             .dx1 = da,
                                             .dx2 = db,
                                             .dim = d});
        return {da, db};
      });
}

Tensor normalize(const Tensor& x, double p, int dim, double eps) {
  check_floating("normalize", x);
  check(eps > 0, "normalize: got eps ", eps, ", expected more than 0");
  const int d = wrap_dim("normalize", dim, x.dim());
  const Tensor wide = x.dtype() == DType::f16 ? x.to(DType::f32) : x;  // eps is 0 in f16
  const Tensor y = div(wide, clamp(norm(wide, p, {d}, true), eps));
  const PrecisionScope* scope = detail::thread_state.precision;
  const bool wide_result = scope && scope->precision.returns_f32();
  return wide_result || wide.dtype() == x.dtype() ? y : y.to(x.dtype());
}

// The difference has the dtype that a precision policy gives to norm, so it is no less exact.
Tensor pairwise_distance(const Tensor& a_, const Tensor& b_, double p, double eps, bool keepdim) {
  static constexpr Op kNorm{"norm", OpClass::reduction};
  check_floating("pairwise_distance", a_);
  check_floating("pairwise_distance", b_);
  check_one_device("pairwise_distance", {&a_, &b_});
  auto [a, b] = kNorm.enter(a_, b_);
  const PrecisionScope scope(Precision::full());
  check(a.dtype() == b.dtype(), "pairwise_distance: got dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected equal ones; convert one with to()");
  broadcast_sizes("pairwise_distance", a.sizes(), b.sizes());
  check(a.dim() > 0 || b.dim() > 0, "pairwise_distance: got scalars, expected vectors");
  return norm(add(sub(a, b), eps), p, {-1}, keepdim);
}

namespace {

// x1 [.., m, k], x2 [.., n, k]: norms of [.., m, n, k].
Tensor pairs(const Tensor& x1, const Tensor& x2, double p) {
  return norm(sub(unsqueeze(x1, -2), unsqueeze(x2, -3)), p, {-1});
}

}  // namespace

Tensor cdist(const Tensor& x1_, const Tensor& x2_, double p) {
  static constexpr Op kNorm{"norm", OpClass::reduction};
  constexpr int64_t kPart = int64_t{1} << 22;  // differences
  check_floating("cdist", x1_);
  check_floating("cdist", x2_);
  check_one_device("cdist", {&x1_, &x2_});
  check(p >= 0, "cdist: got p = ", p, ", expected 0 or more");
  auto [x1, x2] = kNorm.enter(x1_, x2_);
  const PrecisionScope scope(Precision::full());
  check(x1.dtype() == x2.dtype(), "cdist: got dtypes ", x1.dtype(), " and ", x2.dtype(),
        ", expected equal ones; convert one with to()");
  check(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), "cdist: got shapes ",
        x1.sizes(), " and ", x2.sizes(),
        ", expected rows of one length, [..., m, k] and [..., n, k]");
  const auto batch = [](const Tensor& x) {
    return Dims(std::span(x.sizes().begin(), static_cast<size_t>(x.dim() - 2)));
  };
  const int64_t count = element_count(broadcast_sizes("cdist", batch(x1), batch(x2)), "cdist");
  const int64_t rows = x1.size(-2), of_row = count * x2.size(-2) * x2.size(-1);
  const int64_t step = std::max<int64_t>(1, kPart / std::max<int64_t>(1, of_row));
  const bool nothing = std::isinf(p) && x1.size(-1) == 0;
  if (nothing || step >= rows) {
    return pairs(x1, x2, nothing ? 2 : p);  // 0 for rows without elements
  }
  std::vector<Tensor> parts;
  for (int64_t row = 0; row < rows; row += step) {
    parts.push_back(recompute([p](const Tensor& a, const Tensor& b) { return pairs(a, b, p); },
                              narrow(x1, -2, row, std::min(step, rows - row)), x2));
  }
  return cat(parts, -2);
}

}  // namespace binade
