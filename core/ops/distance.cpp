#include <binade/core/autograd/op.h>
#include <binade/core/autograd/recompute.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/kernels/reduce/cosine_similarity.h>

#include <algorithm>
#include <cmath>

namespace binade {

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
  return div(x, clamp(norm(x, p, {d}, true), eps));
}

// The difference has the dtype that a precision policy gives to norm, so that it is as exact.
Tensor pairwise_distance(const Tensor& a_, const Tensor& b_, double p, double eps, bool keepdim) {
  static constexpr Op kNorm{"norm", OpClass::reduction};
  check_floating("pairwise_distance", a_);
  check_floating("pairwise_distance", b_);
  auto [a, b] = kNorm.enter(a_, b_);
  const PrecisionScope scope(Precision::full());
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
  if (std::isinf(p) && x1.size(-1) == 0) {
    return pairs(x1, x2, 2);  // 0
  }
  if (step >= rows) {
    return pairs(x1, x2, p);
  }
  std::vector<Tensor> parts;
  for (int64_t row = 0; row < rows; row += step) {
    parts.push_back(recompute([p](const Tensor& a, const Tensor& b) { return pairs(a, b, p); },
                              narrow(x1, -2, row, std::min(step, rows - row)), x2));
  }
  return cat(parts, -2);
}

}  // namespace binade
