// Parity names of linear algebra.
#include <binade/core/linalg/linalg.h>
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

Tensor squared(const Tensor& x) { return mul(x, x); }

Outputs run_svd(const Call& call) {
  const auto [u, s, vh] = linalg::svd(call.in("a"), call.attr("full_matrices"));
  const int64_t k = s.size(-1);
  return {{"s", s}, {"u", squared(narrow(u, -1, 0, k))}, {"vh", squared(narrow(vh, -2, 0, k))}};
}

Outputs run_eigh(const Call& call) {
  const auto [values, vectors] = linalg::eigh(call.in("a"), call.attr("uplo").get<std::string>());
  return {{"values", values}, {"vectors", squared(vectors)}};
}

Outputs run_slogdet(const Call& call) {
  const auto [sign, logabsdet] = linalg::slogdet(call.in("a"));
  return {{"sign", sign}, {"logabsdet", logabsdet}};
}

Outputs run_qr(const Call& call) {
  const auto [q, r] = linalg::qr(call.in("a"), call.attr("mode").get<std::string>());
  return {{"q", q}, {"r", r}};
}

Outputs run_triangular(const Call& call) {
  return one(linalg::solve_triangular(call.in("a"), call.in("b"),
                                      {.upper = call.attr("upper"),
                                       .left = call.attr("left"),
                                       .unitriangular = call.attr("unitriangular")}));
}

linalg::MatrixNormOptions norm_options(const Call& call) {
  return {
      .row = call.attr("dim")[0], .column = call.attr("dim")[1], .keepdim = call.attr("keepdim")};
}

}  // namespace

const std::map<std::string, Handler>& linalg_ops() {
  static const std::map<std::string, Handler> ops = {
      {"solve",
       [](const Call& call) {
         return one(linalg::solve(call.in("a"), call.in("b"), {.left = call.attr("left")}));
       }},
      {"solve_triangular", run_triangular},
      {"inv", [](const Call& call) { return one(linalg::inv(call.in("a"))); }},
      {"det", [](const Call& call) { return one(linalg::det(call.in("a"))); }},
      {"slogdet", run_slogdet},
      {"cholesky",
       [](const Call& call) {
         return one(linalg::cholesky(call.in("a"), {.upper = call.attr("upper")}));
       }},
      {"qr", run_qr},
      {"svd", run_svd},
      {"svdvals", [](const Call& call) { return one(linalg::svdvals(call.in("a"))); }},
      {"pinv",
       [](const Call& call) {
         return one(linalg::pinv(call.in("a"), {.rcond = number(call.attr("rcond"))}));
       }},
      {"eigh", run_eigh},
      {"eigvalsh", [](const Call& call) { return one(linalg::eigvalsh(call.in("a"))); }},
      {"lstsq",
       [](const Call& call) { return one(linalg::lstsq(call.in("a"), call.in("b")).solution); }},
      {"matrix_norm",
       [](const Call& call) {
         return one(linalg::matrix_norm(call.in("a"), call.attr("order").get<std::string>(),
                                        norm_options(call)));
       }},
      {"matrix_norm_scalar",
       [](const Call& call) {
         return one(
             linalg::matrix_norm(call.in("a"), number(call.attr("order")), norm_options(call)));
       }},
  };
  return ops;
}

}  // namespace binade::parity
