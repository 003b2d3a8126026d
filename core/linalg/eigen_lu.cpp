// Solutions, inverses and determinants by LU with partial pivoting, and triangular systems.
#ifdef BINADE_WITH_EIGEN
#include <binade/core/linalg/eigen_internal.h>
#include <binade/core/linalg/linalg.h>

#include <Eigen/LU>
#include <cmath>

namespace binade {

bool linalg::is_available() { return true; }

namespace linalg::host {
namespace {

template <class T>
using LU = Eigen::PartialPivLU<Matrix<T>>;

template <class T>
bool is_singular(const LU<T>& lu) {
  return (lu.matrixLU().diagonal().array() == T(0)).any();
}

template <class T>
void solve_one(const LU<T>& lu, Rows<T> b) {
  const Matrix<T> right = b;
  b = lu.solve(right);
}

template <unsigned kMode, class T>
void solve_triangle(const Matrix<T>& a, Rows<T> b) {
  Matrix<T> x = b;
  a.template triangularView<kMode>().solveInPlace(x);
  b = x;
}

template <class T>
void determinant_of(const Batch& a, T* sign, T* value, int64_t i) {
  if (a.rows == 0) {
    value[i] = sign ? T(0) : T(1);
    if (sign) {
      sign[i] = 1;
    }
    return;
  }
  const LU<T> lu(at<T>(a, i));
  if (!sign) {
    value[i] = lu.determinant();
    return;
  }
  T negative = static_cast<T>(lu.permutationP().determinant()), sum = 0;
  for (int64_t k = 0; k < a.rows; ++k) {
    const T pivot = lu.matrixLU()(k, k);
    negative *= std::isnan(pivot) ? pivot : static_cast<T>((pivot > 0) - (pivot < 0));
    sum += std::log(std::fabs(pivot));
  }
  sign[i] = negative;
  value[i] = sum;
}

}  // namespace

int64_t solve(const Batch& a, const Batch& b) {
  if (a.rows == 0 || b.count == 0) {
    return kAllDone;
  }
  return dispatch(b.dtype, [&]<class T>(Type<T>) -> int64_t {
    if (a.count == 1) {  // one factorisation for all
      const LU<T> lu(at<T>(a, 0));
      if (is_singular(lu)) {
        return 0;
      }
      return for_each(b.count, 2 * cubic(a.rows, a.rows, b.cols), [&](int64_t i) {
        solve_one(lu, at<T>(b, i));
        return true;
      });
    }
    return for_each(b.count, cubic(a.rows, a.rows, a.rows + 2 * b.cols), [&](int64_t i) {
      const LU<T> lu(at<T>(a, i));
      const bool works = !is_singular(lu);
      if (works) {
        solve_one(lu, at<T>(b, i));
      }
      return works;
    });
  });
}

int64_t solve_triangular(const Batch& a, const Batch& b, bool upper, bool unitriangular) {
  if (a.rows == 0 || b.count == 0) {
    return kAllDone;
  }
  return dispatch(b.dtype, [&]<class T>(Type<T>) {
    return for_each(b.count, cubic(a.rows, a.rows, b.cols), [&](int64_t i) {
      const Matrix<T> m = at<T>(a, a.count == 1 ? 0 : i);
      if (!unitriangular && (m.diagonal().array() == T(0)).any()) {
        return false;
      }
      const auto solve = upper ? (unitriangular ? solve_triangle<Eigen::UnitUpper, T>
                                                : solve_triangle<Eigen::Upper, T>)
                               : (unitriangular ? solve_triangle<Eigen::UnitLower, T>
                                                : solve_triangle<Eigen::Lower, T>);
      solve(m, at<T>(b, i));
      return true;
    });
  });
}

int64_t invert(const Batch& a) {
  if (a.rows == 0) {
    return kAllDone;
  }
  return dispatch(a.dtype, [&]<class T>(Type<T>) {
    return for_each(a.count, 2 * cubic(a.rows, a.rows, a.rows), [&](int64_t i) {
      const LU<T> lu(at<T>(a, i));
      const bool works = !is_singular(lu);
      if (works) {
        const Matrix<T> inverse = lu.inverse();
        at<T>(a, i) = inverse;
      }
      return works;
    });
  });
}

void determinant(const Batch& a, const Batch& sign, const Batch& value, bool logarithm) {
  dispatch(a.dtype, [&]<class T>(Type<T>) {
    for_each(a.count, cubic(a.rows, a.rows, a.rows), [&](int64_t i) {
      determinant_of<T>(a, logarithm ? static_cast<T*>(sign.data) : nullptr,
                        static_cast<T*>(value.data), i);
      return true;
    });
  });
}

}  // namespace linalg::host
}  // namespace binade
#endif
