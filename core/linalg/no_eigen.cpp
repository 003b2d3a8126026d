// For builds without Eigen: every factorisation throws one line that says what is missing. Other
// builds use eigen_*.cpp.
#include <binade/core/linalg/host_internal.h>
#include <binade/core/linalg/linalg.h>

#ifndef BINADE_WITH_EIGEN

namespace binade {

bool linalg::is_available() { return false; }

namespace linalg::host {
namespace {

[[noreturn]] void no_eigen(const char* what) {
  fail(what,
       ": this build has no Eigen, expected one with it: install libeigen3-dev and configure with "
       "-DBINADE_EIGEN=ON");
}

}  // namespace

int64_t solve(const Batch&, const Batch&) { no_eigen("solve"); }
int64_t solve_triangular(const Batch&, const Batch&, bool, bool) { no_eigen("solve_triangular"); }
int64_t invert(const Batch&) { no_eigen("inv"); }
void determinant(const Batch&, const Batch&, const Batch&, bool logarithm) {
  no_eigen(logarithm ? "slogdet" : "det");
}
int64_t cofactors(const Batch&) { no_eigen("det"); }
int64_t cholesky(const Batch&) { no_eigen("cholesky"); }
void qr(const Batch&, const Batch&, const Batch&) { no_eigen("qr"); }
int64_t svd(const Batch&, const Batch&, const Batch&, const Batch&, bool vectors) {
  no_eigen(vectors ? "svd" : "svdvals");
}
int64_t eigh(const Batch&, const Batch&, const Batch&, bool vectors) {
  no_eigen(vectors ? "eigh" : "eigvalsh");
}
int64_t lstsq(const Batch&, const Batch&, const Batch&, int64_t*, double) { no_eigen("lstsq"); }

}  // namespace linalg::host
}  // namespace binade

#endif
