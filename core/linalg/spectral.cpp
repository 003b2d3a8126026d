// svd, svdvals, pinv, eigh and eigvalsh.
#include <binade/core/autograd/op.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/linalg/matrices_internal.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <array>

namespace binade::linalg {
namespace {

Tensor as_row(const Tensor& values) { return unsqueeze(values, -2); }
Tensor as_column(const Tensor& values) { return unsqueeze(values, -1); }
Tensor skew(const Tensor& x) { return sub(x, mt(x)); }

// 1 / (values_j - values_i) at [i, j], 0 on the diagonal.
Tensor inverse_gaps(const Tensor& gaps) {
  const Tensor identity = eye(gaps.size(-1), gaps.dtype(), gaps.device());
  return mul(inverse_elements(add(gaps, identity)), sub(1, identity));
}

Tensor added(const Tensor& sum, const Tensor& term) {
  return sum.defined() ? add(sum, term) : term;
}

// The gradient of a = u diag(s) vh with k columns in u and rows in vh. Undefined gradients are 0.
//   da = u (diag(ds) + (skew(u^T du) f) s + s (skew(v^T dv) f)) vh + what lies outside of u and vh,
//   f_ij = 1 / (s_j^2 - s_i^2)
Tensor svd_gradient(const SVD& factors, const SVD& gradients) {
  const auto& [u, s, vh] = factors;
  const auto& [du, ds, dvh] = gradients;
  const int64_t k = s.size(-1);
  Tensor inner = ds.defined() ? diag_embed(ds) : Tensor();
  if (du.defined() || dvh.defined()) {
    const Tensor f = inverse_gaps(mul(sub(as_row(s), as_column(s)), add(as_row(s), as_column(s))));
    if (du.defined()) {
      inner = added(inner, mul(mul(skew(matmul(mt(u), du)), f), as_row(s)));
    }
    if (dvh.defined()) {
      inner = added(inner, mul(as_column(s), mul(skew(matmul(vh, mt(dvh))), f)));
    }
  }
  Tensor left = matmul(u, inner);
  if (du.defined() && u.size(-2) > k) {
    const Tensor outside = sub(du, matmul(u, matmul(mt(u), du)));
    left = add(left, mul(outside, inverse_elements(as_row(s))));
  }
  Tensor da = matmul(left, vh);
  if (dvh.defined() && vh.size(-1) > k) {
    const Tensor outside = sub(dvh, matmul(matmul(dvh, mt(vh)), vh));
    da = add(da, matmul(u, mul(outside, inverse_elements(as_column(s)))));
  }
  return da;
}

// The first k entries along a dimension of a gradient; the others must be 0.
Tensor unique_part(const Tensor& gradient, int dim, int64_t k, const char* what) {
  if (!gradient.defined() || gradient.size(dim) == k) {
    return gradient;
  }
  const Tensor rest = narrow(gradient, dim, k, gradient.size(dim) - k).detach();
  check(rest.numel() == 0 || all(eq(rest, 0)).item() != 0, "svd: got a gradient of the ", what,
        " beyond min(m, n) = ", k,
        ", which are not unique, expected 0 there; use full_matrices = false");
  return narrow(gradient, dim, 0, k);
}

SVD wide_of(const SVD& x) {
  const auto each = [](const Tensor& t) { return t.defined() ? wide(t) : t; };
  return {each(x.u), each(x.s), each(x.vh)};
}

SVD svd_of(const Tensor& a, bool full);

Grads svd_backward(std::span<const Tensor> dys, std::span<const Tensor> saved, bool full) {
  const Tensor& a = saved[0];
  SVD factors{saved[1], saved[2], saved[3]};
  if (computes_again(a)) {
    factors = svd_of(wide(a), full);
  }
  const int64_t k = factors.s.size(-1);
  factors.u = narrow(factors.u, -1, 0, k);
  factors.vh = narrow(factors.vh, -2, 0, k);
  const SVD gradients{unique_part(dys[0], -1, k, "columns of u"), dys[1],
                      unique_part(dys[2], -2, k, "rows of vh")};
  return {narrow_to(svd_gradient(factors, wide_of(gradients)), a)};
}

constexpr Op kSvd{"svd", OpClass::reduction, true};
constexpr const char* kNotFinite = "a matrix with NaN or infinities";
constexpr const char* kFinite = "finite elements, for which the iteration converges";

SVD svd_of(const Tensor& a_, bool full) {
  auto [a] = kSvd.enter(a_);
  check_matrices("svd", a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor matrices = to_host(a), u = host_memory(batch_of(a, {m, full ? m : k}), a),
               s = host_memory(batch_of(a, {k}), a),
               vh = host_memory(batch_of(a, {full ? n : k, n}), a);
  check_done(host::svd(batch(matrices), batch(u), vectors(s), batch(vh), true), "svd", batch_of(a),
             kNotFinite, kFinite);
  std::array<Tensor, 3> results = {from_host(u, a), from_host(s, a), from_host(vh, a)};
  const std::array<Tensor, 4> keep = {a, results[0], results[1], results[2]};
  kSvd.record_many(
      std::array{a}, results, keep,
      [full](std::span<const Tensor> dys, Needs, std::span<const Tensor> saved) -> Grads {
        return svd_backward(dys, saved, full);
      });
  return {results[0], results[1], results[2]};
}

// v diag(1 / s) u^T of host factors, 1 / s = 0 for s <= rcond times the largest.
Tensor pseudoinverse(const Tensor& u, const Tensor& s, const Tensor& vh, double rcond) {
  if (s.size(-1) == 0) {
    return zeros(batch_of(u, {vh.size(-1), u.size(-2)}), u.dtype());
  }
  const NoGradGuard guard;
  const PrecisionScope no_policy(Precision::full());
  const Tensor large = gt(s, mul(narrow(s, -1, 0, 1), rcond));
  const Tensor inverse = where(large, div(1, where(large, s, 1)), 0);
  return matmul(mul(mt(vh), as_row(inverse)), mt(u));
}

// With p = pinv(a): da = (I - a p) g^T p p^T + p^T p g^T (I - p a) - p^T g p^T
// (Golub and Pereyra, 1973).
Tensor pinv_gradient(const Tensor& a, const Tensor& p, const Tensor& g) {
  const Tensor left = matmul(mt(g), matmul(p, mt(p))), right = matmul(matmul(mt(p), p), mt(g));
  const Tensor within = matmul(matmul(mt(p), g), mt(p));
  return sub(add(sub(left, matmul(a, matmul(p, left))), sub(right, matmul(matmul(right, p), a))),
             within);
}

Tensor pinv_of(const Tensor& a_, double rcond) {
  static constexpr Op kOp{"pinv", OpClass::reduction, true};
  auto [a] = kOp.enter(a_);
  check_matrices("pinv", a);
  check(rcond == rcond, "pinv: got rcond = nan, expected a number; negative ones mean the default");
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor matrices = to_host(a), u = host_memory(batch_of(a, {m, k}), a),
               s = host_memory(batch_of(a, {k}), a), vh = host_memory(batch_of(a, {k, n}), a);
  check_done(host::svd(batch(matrices), batch(u), vectors(s), batch(vh), true), "pinv", batch_of(a),
             kNotFinite, kFinite);
  const double least =
      rcond >= 0 ? rcond : epsilon(s.dtype()) * static_cast<double>(std::max(m, n));
  Tensor y = from_host(pseudoinverse(u, s, vh, least), a);
  return kOp.record({a}, y, save(a, y),
                    [rcond](const Tensor& dy, const Tensor& a_, const Tensor& y) -> Grads {
                      const Tensor a = wide(a_);
                      const Tensor p = computes_again(a_) ? pinv_of(a, rcond) : y;
                      return {narrow_to(pinv_gradient(a, p, wide(dy)), a_)};
                    });
}

constexpr Op kEigh{"eigh", OpClass::reduction, true};

// da = v (diag(dl) + (v^T dv) f) v^T made symmetric, f_ij = 1 / (l_j - l_i)
Tensor eigh_gradient(const Eigh& factors, const Tensor& dl, const Tensor& dv) {
  const auto& [l, v] = factors;
  Tensor inner = dl.defined() ? diag_embed(dl) : Tensor();
  if (dv.defined()) {
    inner = added(inner, mul(matmul(mt(v), dv), inverse_gaps(sub(as_row(l), as_column(l)))));
  }
  return symmetric(matmul(matmul(v, inner), mt(v)));
}

Eigh eigh_of(const Tensor& a_) {
  auto [a] = kEigh.enter(a_);
  check_square("eigh", a);
  const int64_t n = a.size(-1);
  const Tensor matrices = to_host(a), values = host_memory(batch_of(a, {n}), a),
               columns = host_memory(a.sizes(), a);
  check_done(host::eigh(batch(matrices), vectors(values), batch(columns), true), "eigh",
             batch_of(a), kNotFinite, kFinite);
  std::array<Tensor, 2> results = {from_host(values, a), from_host(columns, a)};
  const std::array<Tensor, 3> keep = {a, results[0], results[1]};
  kEigh.record_many(
      std::array{a}, results, keep,
      [](std::span<const Tensor> dys, Needs, std::span<const Tensor> saved) -> Grads {
        const Tensor& a = saved[0];
        const Eigh factors = computes_again(a) ? eigh_of(wide(a)) : Eigh{saved[1], saved[2]};
        const auto each = [](const Tensor& t) { return t.defined() ? wide(t) : t; };
        return {narrow_to(eigh_gradient(factors, each(dys[0]), each(dys[1])), a)};
      });
  return {results[0], results[1]};
}

// The triangle of a that is read, moved to the lower triangle.
Tensor lower_of(const char* op, const Tensor& a, std::string_view uplo) {
  check(uplo == "L" || uplo == "U", op, ": got uplo \"", uplo, "\", expected \"L\" or \"U\"");
  check_square(op, a);
  return uplo == "U" ? mt(a) : a;
}

bool has_gradient(const Tensor& a) { return grad_enabled() && a.requires_grad(); }

}  // namespace

SVD svd(const Tensor& a, bool full_matrices, SourceLine where) {
  const detail::HostSyncCall waits("svd", where);
  return svd_of(a, full_matrices);
}

Tensor svdvals(const Tensor& a_, SourceLine where) {
  const detail::HostSyncCall waits("svdvals", where);
  check_matrices("svdvals", a_);
  if (has_gradient(a_)) {
    return svd_of(a_, false).s;
  }
  auto [a] = kSvd.enter(a_);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor matrices = to_host(a), s = host_memory(batch_of(a, {k}), a);
  const host::Batch u{s.dtype(), 0, m, k, nullptr}, vh{s.dtype(), 0, k, n, nullptr};
  check_done(host::svd(batch(matrices), u, vectors(s), vh, false), "svdvals", batch_of(a),
             kNotFinite, kFinite);
  Tensor y = from_host(s, a);
  return kSvd.plain({a}, y);
}

Tensor pinv(const Tensor& a, const PinvOptions& options, SourceLine where) {
  const detail::HostSyncCall waits("pinv", where);
  return pinv_of(a, options.rcond);
}

Eigh eigh(const Tensor& a, std::string_view uplo, SourceLine where) {
  const detail::HostSyncCall waits("eigh", where);
  return eigh_of(lower_of("eigh", a, uplo));
}

Tensor eigvalsh(const Tensor& a_, std::string_view uplo, SourceLine where) {
  const detail::HostSyncCall waits("eigvalsh", where);
  const Tensor lower = lower_of("eigvalsh", a_, uplo);
  if (has_gradient(lower)) {
    return eigh_of(lower).eigenvalues;
  }
  auto [a] = kEigh.enter(lower);
  const Tensor matrices = to_host(a), values = host_memory(batch_of(a, {a.size(-1)}), a);
  check_done(host::eigh(batch(matrices), vectors(values), nothing(values), false), "eigvalsh",
             batch_of(a), kNotFinite, kFinite);
  Tensor y = from_host(values, a);
  return kEigh.plain({a}, y);
}

}  // namespace binade::linalg
