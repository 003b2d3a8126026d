// Cholesky, QR, and least squares by a complete orthogonal decomposition, in double.
#ifdef BINADE_WITH_EIGEN
#include <binade/core/linalg/eigen_internal.h>

#include <Eigen/Cholesky>
#include <Eigen/QR>

namespace binade::linalg::host {

int64_t cholesky(const Batch& a) {
  if (a.rows == 0) {
    return kAllDone;
  }
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, cubic(a.rows, a.rows, a.rows) / 3, [&](int64_t i) {
      const Matrix<T> m = at<T>(a, i);
      const Eigen::LLT<Matrix<T>> llt(m);
      // Eigen lets a NaN pass.
      const bool works =
          llt.info() == Eigen::Success && (llt.matrixLLT().diagonal().array() > T(0)).all();
      if (works) {
        at<T>(a, i) = Matrix<T>(llt.matrixL());
      }
      return works;
    });
  });
}

void qr(const Batch& a, const Batch& q, const Batch& r) {
  const int64_t k = std::min(a.rows, a.cols);
  dispatch(a.dtype, [&]<class T>(Type<T>) {
    for_each(a.count, 4 * cubic(a.rows, a.cols, q.cols), [&](int64_t i) {
      Rows<T> to_q = at<T>(q, i);
      if (k == 0) {
        to_q.setIdentity();
        return true;
      }
      const Matrix<T> m = at<T>(a, i);
      const Eigen::HouseholderQR<Matrix<T>> factors(m);
      const Matrix<T> orthogonal = factors.householderQ() * Matrix<T>::Identity(a.rows, q.cols);
      to_q = orthogonal;
      const Matrix<T>& packed = factors.matrixQR();
      Rows<T> to_r = at<T>(r, i);
      for (int64_t row = 0; row < r.rows; ++row) {
        for (int64_t column = 0; column < r.cols; ++column) {
          to_r(row, column) = column < row ? T(0) : packed(row, column);
        }
      }
      return true;
    });
  });
}

int64_t lstsq(const Batch& a, const Batch& b, const Batch& x, int64_t* ranks, double rcond) {
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, 4 * cubic(a.rows, a.cols, a.cols + b.cols), [&](int64_t i) {
      Rows<T> to = at<T>(x, i);
      ranks[i] = 0;
      if (a.rows == 0 || a.cols == 0) {
        to.setZero();
        return true;
      }
      const Matrix<double> m = in_double<T>(a, i), right = in_double<T>(b, i);
      if (!m.allFinite()) {
        return false;
      }
      Eigen::CompleteOrthogonalDecomposition<Matrix<double>> factors;
      factors.setThreshold(rcond);
      factors.compute(m);
      ranks[i] = factors.rank();
      if (b.cols > 0) {
        const Matrix<double> solution = factors.solve(right);
        store<T>(x, i, solution);
      }
      return true;
    });
  });
}

}  // namespace binade::linalg::host
#endif
