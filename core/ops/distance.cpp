#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/kernels/reduce/cosine_similarity.h>

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

}  // namespace binade
