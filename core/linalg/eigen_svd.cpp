// Singular values and vectors by divide and conquer, and cofactors by them. In double.
#ifdef BINADE_WITH_EIGEN
#include <binade/core/linalg/eigen_internal.h>

#include <Eigen/LU>
#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace binade::linalg::host {
namespace {

using Svd = Eigen::BDCSVD<Matrix<double>>;

// det(a) a^-T = det(u) det(v) u diag(product of the other singular values) v^T.
Matrix<double> cofactors_of_singular(const Matrix<double>& a) {
  const Svd svd(a, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const double sign = svd.matrixU().determinant() * svd.matrixV().determinant() < 0 ? -1 : 1;
  Matrix<double> scaled = svd.matrixU();
  for (int64_t i = 0; i < a.cols(); ++i) {
    double others = sign;
    for (int64_t j = 0; j < a.cols(); ++j) {
      others *= i == j ? 1 : svd.singularValues()(j);
    }
    scaled.col(i) *= others;
  }
  return scaled * svd.matrixV().transpose();
}

Matrix<double> cofactors_of(const Matrix<double>& a) {
  // Above this the product of determinant and inverse is accurate.
  const double least = std::sqrt(std::numeric_limits<double>::epsilon());
  const Eigen::PartialPivLU<Matrix<double>> lu(a);
  const bool singular = (lu.matrixLU().diagonal().array() == 0).any();
  if (singular || lu.rcond() < least) {
    return cofactors_of_singular(a);
  }
  const Matrix<double> inverse = lu.inverse();
  return lu.determinant() * inverse.transpose();
}

}  // namespace

int64_t svd(const Batch& a, const Batch& u, const Batch& s, const Batch& vh, bool vectors) {
  const bool full = u.cols != s.rows || vh.rows != s.rows;
  const unsigned both =
      full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, 20 * cubic(a.rows, a.cols, s.rows), [&](int64_t i) {
      if (s.rows == 0) {
        if (vectors) {
          at<T>(u, i).setIdentity();
          at<T>(vh, i).setIdentity();
        }
        return true;
      }
      const Matrix<double> m = in_double<T>(a, i);
      if (!m.allFinite()) {
        return false;
      }
      const Svd factors(m, vectors ? both : 0u);
      store<T>(s, i, factors.singularValues());
      if (vectors) {
        store<T>(u, i, factors.matrixU());
        store<T>(vh, i, factors.matrixV().transpose());
      }
      return factors.info() == Eigen::Success;
    });
  });
}

int64_t cofactors(const Batch& a) {
  if (a.rows == 0) {
    return kAllDone;
  }
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, 4 * cubic(a.rows, a.rows, a.rows), [&](int64_t i) {
      const Matrix<double> m = in_double<T>(a, i);
      if (!m.allFinite()) {
        return false;
      }
      store<T>(a, i, cofactors_of(m));
      return true;
    });
  });
}

}  // namespace binade::linalg::host
#endif
