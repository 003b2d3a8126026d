// Matrices in double and their factorisations by other algorithms than Eigen's, and the rows of ops
// of matrices. Each input becomes a matrix that the op can take, in the function and in the
// reference alike: x plus multiples of the identity, or with growing multiples on the diagonal,
// which keep eigenvalues and singular values apart.
#pragma once
#include <binade/core/device/thread_state.h>

#include <utility>

#include <tests/op_table/move_row.h>

namespace binade::op_table {

// One matrix of a batch.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = std::vector<double>(static_cast<size_t>(rows * columns));

  double& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double operator()(int64_t i, int64_t j) const {
    return values[static_cast<size_t>(i * columns + j)];
  }
};

Matrix transposed(const Matrix& a);
Matrix product(const Matrix& a, const Matrix& b);
Matrix squared(Matrix a);  // element by element
Matrix identity(int64_t n);
// The solution of a x = b by Gauss and Jordan, with row exchanges.
Matrix solution(const Matrix& a, Matrix b);
double determinant(const Matrix& a);
Matrix lower_factor(const Matrix& a);  // Cholesky

struct Factors {
  Matrix u, s, vh;  // s [k, 1]
};
Factors thin_svd(const Matrix& a);

// Results of a function of one matrix of each input, which broadcast: as many as `shapes`, the
// sizes of each after the batch.
Arrays for_matrices(const Arrays& inputs, const std::vector<Dims>& shapes,
                    const std::function<std::vector<Matrix>(const std::vector<Matrix>&)>& f);

enum class Form : uint8_t { plain, regular, spread, definite };
Array formed(Form form, const Array& x);
Tensor formed(Form form, const Tensor& x);

// No precision policy acts while one exists: the inputs of an op under test are not rounded.
class NoPolicy {
 public:
  NoPolicy() : before_(std::exchange(detail::thread_state.precision, nullptr)) {}
  ~NoPolicy() { detail::thread_state.precision = before_; }
  NoPolicy(const NoPolicy&) = delete;
  NoPolicy& operator=(const NoPolicy&) = delete;

 private:
  const PrecisionScope* before_;
};

// x^2 + 1/2 in the compute dtype: any numbers as weights or variances.
inline Tensor positive(const Tensor& x) {
  const NoPolicy no_policy;
  return x.defined() && is_floating(x.dtype()) ? add(square(cast(x, compute_dtype(x.dtype()))), 0.5)
                                               : x;
}
inline Array positive(const Array& x) {
  return map(x, [](double v) { return v * v + 0.5; });
}

// A row whose first input has this form. It has shapes of one matrix, and the errors that all ops
// of matrices share.
OpRow matrix_row(const char* name, Form form, const std::function<Tensors(const Tensors&)>& op,
                 const std::function<Arrays(const Arrays&)>& reference);
void add_not_square(OpRow& row);

std::vector<OpRow> spectral_rows();     // linalg_spectral.cpp
std::vector<OpRow> matrix_norm_rows();  // linalg_norm.cpp

}  // namespace binade::op_table
