// Eigenvalues and eigenvectors of symmetric matrices. In double.
#ifdef BINADE_WITH_EIGEN
#include <binade/core/linalg/eigen_internal.h>

#include <Eigen/Eigenvalues>

namespace binade::linalg::host {

int64_t eigh(const Batch& a, const Batch& values, const Batch& columns, bool vectors) {
  if (a.rows == 0) {
    return kAllDone;
  }
  const int wanted = vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, 10 * cubic(a.rows, a.rows, a.rows), [&](int64_t i) {
      // Only the lower triangle is the input: the other may hold anything, NaN too.
      const Matrix<double> m = in_double<T>(a, i).template triangularView<Eigen::Lower>();
      if (!m.allFinite()) {
        return false;
      }
      const Eigen::SelfAdjointEigenSolver<Matrix<double>> solver(m, wanted);
      if (solver.info() != Eigen::Success) {
        return false;
      }
      store<T>(values, i, solver.eigenvalues());
      if (vectors) {
        store<T>(columns, i, solver.eigenvectors());
      }
      return true;
    });
  });
}

}  // namespace binade::linalg::host
#endif
