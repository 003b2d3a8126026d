// cholesky and qr.
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

Tensor diagonal_matrix(const Tensor& x) { return diag_embed(diagonal(x, 0, -2, -1)); }

Tensor lower_factor(const Tensor& a_) {
  static constexpr Op kOp{"cholesky", OpClass::reduction, true};
  auto [a] = kOp.enter(a_);
  check_square("cholesky", a);
  const Tensor host = to_host(a);
  check_done(host::cholesky(batch(host)), "cholesky", batch_of(a),
             "a matrix that is not positive definite",
             "positive eigenvalues; adding a small multiple of the identity may help");
  Tensor l = from_host(host, a);
  return kOp.record(
      {a}, l, save(a, l), [](const Tensor& dl, const Tensor& a, const Tensor& l_) -> Grads {
        // da = l^-T p l^-1 made symmetric, p = the lower triangle of l^T dl, half of its diagonal
        const Tensor l = is_half(a.dtype()) ? lower_factor(wide(a)) : l_;
        const Tensor lower = tril(matmul(mt(l), wide(dl)));
        const Tensor p = sub(lower, mul(diagonal_matrix(lower), 0.5));
        const Tensor left = solve_triangular(mt(l), p, {.upper = true}, {});
        const Tensor both = solve_triangular(l, left, {.upper = false, .left = false}, {});
        return {narrow_to(symmetric(both), a)};
      });
}

// The gradient of a = q r where r is square: da = (dq + q s) r^-T, s the upper triangle of
// dr r^T - q^T dq, mirrored.
Tensor tall_qr_gradient(const QR& factors, const Tensor& dq, const Tensor& dr) {
  const auto& [q, r] = factors;
  const Tensor upper = triu(sub(matmul(dr, mt(r)), matmul(mt(q), dq)));
  const Tensor s = sub(add(upper, mt(upper)), diagonal_matrix(upper));
  return solve_triangular(mt(r), add(dq, matmul(q, s)), {.upper = false, .left = false}, {});
}

// a = [x | y] with square x = q u, and y = q v.
Tensor qr_gradient(const Tensor& a, const QR& factors, const Tensor& dq, const Tensor& dr) {
  const int64_t m = a.size(-2), n = a.size(-1);
  if (m >= n) {
    return tall_qr_gradient(factors, dq, dr);
  }
  const Tensor y = narrow(a, -1, m, n - m), dv = narrow(dr, -1, m, n - m);
  const QR square{factors.q, narrow(factors.r, -1, 0, m)};
  const Tensor dx = tall_qr_gradient(square, add(dq, matmul(y, mt(dv))), narrow(dr, -1, 0, m));
  return cat({dx, matmul(factors.q, dv)}, -1);
}

QR qr_of(const Tensor& a_, bool complete) {
  static constexpr Op kOp{"qr", OpClass::reduction, true};
  auto [a] = kOp.enter(a_);
  check_matrices("qr", a);
  const int64_t m = a.size(-2), n = a.size(-1), k = complete ? m : std::min(m, n);
  const Tensor matrices = to_host(a), q = host_memory(batch_of(a, {m, k}), a),
               r = host_memory(batch_of(a, {k, n}), a);
  host::qr(batch(matrices), batch(q), batch(r));
  std::array<Tensor, 2> results = {from_host(q, a), from_host(r, a)};
  const std::array<Tensor, 3> keep = {a, results[0], results[1]};
  kOp.record_many(
      std::array{a}, results, keep,
      [complete](std::span<const Tensor> dys, Needs, std::span<const Tensor> saved) -> Grads {
        const Tensor& a = saved[0];
        check(!complete || a.size(-2) <= a.size(-1), "qr: got a gradient of mode complete for ",
              a.sizes(),
              ", expected at most as many rows as columns: the last columns of q are "
              "not unique; use mode reduced");
        const QR factors = computes_again(a) ? qr_of(wide(a), complete) : QR{saved[1], saved[2]};
        const Tensor dq = dys[0].defined() ? wide(dys[0]) : zeros_like(factors.q);
        const Tensor dr = dys[1].defined() ? wide(dys[1]) : zeros_like(factors.r);
        return {narrow_to(qr_gradient(wide(a), factors, dq, dr), a)};
      });
  return {results[0], results[1]};
}

}  // namespace

Tensor cholesky(const Tensor& a, const CholeskyOptions& options, SourceLine where) {
  const detail::HostSyncCall waits("cholesky", where);
  check_square("cholesky", a);
  return options.upper ? mt(lower_factor(mt(a))) : lower_factor(a);
}

QR qr(const Tensor& a, std::string_view mode, SourceLine where) {
  const detail::HostSyncCall waits("qr", where);
  check(mode == "reduced" || mode == "complete" || mode == "r", "qr: got mode \"", mode,
        "\", expected \"reduced\", \"complete\" or \"r\"");
  QR factors = qr_of(a, mode == "complete");
  if (mode == "r") {
    factors.q = empty({0}, factors.r.dtype(), factors.r.device());
  }
  return factors;
}

}  // namespace binade::linalg
