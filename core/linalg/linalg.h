// Linear algebra on batches of matrices, with the names, arguments and shapes of torch.linalg.
//
// Inputs are [..., rows, columns] of one floating dtype; leading dimensions are a batch of any
// shape, which may be empty, as may the matrices. f64 and f32 are computed in their own dtype or
// better; f16 and bf16 in f32, and rounded once. Gradients are PyTorch's, and can be differentiated
// again unless a function says otherwise.
//
// The factorisations are Eigen's, on the CPU: each matrix runs on one thread, a batch on all, and
// the bits do not depend on the number of threads. A tensor of another device is copied to the host
// and the result back; HostSyncGuard (core/device/host_sync.h) names the call.
//
// A build without Eigen (`binade doctor` shows it) throws an Error that says so, except in the
// orders of matrix_norm that need no factorisation.
//
// A matrix that has no result (singular, not positive definite, with NaN or infinities where no
// factorisation exists) is an Error that names its index in the batch.
#pragma once
#include <binade/core/tensor/source_line.h>
#include <binade/core/tensor/tensor.h>

#include <string_view>

namespace binade::linalg {

// True if this build has Eigen.
bool is_available();

struct SolveOptions {
  bool left = true;  // a x = b; false: x a = b
};
// The solution x of a x = b, by LU with partial pivoting: a [..., n, n], b [..., n, k] -> [..., n,
// k]; with left = false b and x are [..., k, n]. Batches broadcast. b is a batch of vectors if it
// has one dimension, or the sizes [..., n] of a without its last dimension. A pivot of exactly 0 is
// an error.
Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options = {},
             SourceLine where = SourceLine::here());

struct TriangularOptions {
  bool upper;                  // which triangle of a is read
  bool left = true;            // a x = b; false: x a = b
  bool unitriangular = false;  // the diagonal counts as ones and is not read
};
// The same for a triangular a, whose other triangle is not read and gets the gradient 0: a [..., n,
// n], b [..., n, k] (left = false: [..., k, n]). Batches broadcast; b is never a vector. A 0 on the
// diagonal is an error. triangular_solve is another name of it.
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options,
                        SourceLine where = SourceLine::here());
inline Tensor triangular_solve(const Tensor& a, const Tensor& b, const TriangularOptions& options,
                               SourceLine where = SourceLine::here()) {
  return solve_triangular(a, b, options, where);
}

// The inverse of a [..., n, n].
Tensor inv(const Tensor& a, SourceLine where = SourceLine::here());

// The determinant of a [..., n, n] -> [...]; 1 for n = 0. Its gradient is the matrix of cofactors,
// also where a is singular; the gradient's own gradient exists only where a is invertible.
Tensor det(const Tensor& a, SourceLine where = SourceLine::here());

struct SignLogDet {
  Tensor sign, logabsdet;  // [...]; the sign has no gradient
};
// det = sign exp(logabsdet) without overflow; 0 and -inf for a singular matrix, which has no
// gradient (an error in backward).
SignLogDet slogdet(const Tensor& a, SourceLine where = SourceLine::here());

struct CholeskyOptions {
  bool upper = false;
};
// The lower triangular l with a = l l^T, or with `upper` the upper triangular u with a = u^T u, of
// a symmetric positive definite a [..., n, n]. Only that triangle of a is read. The gradient is
// symmetric: that of a matrix whose two triangles change together. Both as in PyTorch.
Tensor cholesky(const Tensor& a, const CholeskyOptions& options = {},
                SourceLine where = SourceLine::here());

struct QR {
  Tensor q, r;
};
// a = q r with orthonormal columns in q and an upper triangular r, by Householder reflections (the
// diagonal of r may be negative, as LAPACK's). a [..., m, n], k = min(m, n). Modes: "reduced" gives
// q [..., m, k] and r [..., k, n]; "complete" gives q [..., m, m] and r [..., m, n], without a
// gradient for m > n (an error in backward); "r" gives the r of reduced and an empty q [0].
QR qr(const Tensor& a, std::string_view mode = "reduced", SourceLine where = SourceLine::here());

struct SVD {
  Tensor u, s, vh;
};
// a = u diag(s) vh with s >= 0 in descending order: a [..., m, n], k = min(m, n); u [..., m, m], s
// [..., k], vh [..., n, n], or u [..., m, k] and vh [..., k, n] without full_matrices. The signs of
// the vectors are arbitrary, so only functions that do not depend on them have a meaningful
// gradient. It is not finite for vectors of equal singular values, as in PyTorch; s alone always
// has one. A gradient of the columns of u (rows of vh) beyond k, which are not unique, is an error.
SVD svd(const Tensor& a, bool full_matrices = true, SourceLine where = SourceLine::here());
// s alone, [..., k].
Tensor svdvals(const Tensor& a, SourceLine where = SourceLine::here());

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
// a = v diag(l) v^T of a symmetric a [..., n, n]: the eigenvalues l [..., n] in ascending order,
// the eigenvectors v [..., n, n] in columns. uplo "L" or "U": the triangle of a that is read. The
// gradient is symmetric. Signs of vectors and equal eigenvalues as in svd.
Eigh eigh(const Tensor& a, std::string_view uplo = "L", SourceLine where = SourceLine::here());
// l alone.
Tensor eigvalsh(const Tensor& a, std::string_view uplo = "L",
                SourceLine where = SourceLine::here());

struct LstsqOptions {
  // Columns that a pivoted QR finds to be smaller than rcond times the largest count as dependent;
  // negative: the dtype's epsilon times max(m, n).
  double rcond = -1;
};
struct Lstsq {
  Tensor solution;  // [..., n, k], or [..., n] for vectors
  // |a x - b|^2 of each column [..., k] ([...] for vectors) if m > n and every rank is n, else [0].
  Tensor residuals;
  Tensor rank;  // i64 [...]; no gradient
};
// The x of least norm among those with the least |a x - b|, of each column of b: a [..., m, n], b
// [..., m, k], or vectors as in solve. Batches broadcast. By a complete orthogonal decomposition,
// as PyTorch's default driver on the CPU. The gradient assumes that the rank does not change.
Lstsq lstsq(const Tensor& a, const Tensor& b, const LstsqOptions& options = {},
            SourceLine where = SourceLine::here());

struct PinvOptions {
  // Singular values of at most rcond times the largest count as 0; negative: the dtype's epsilon
  // times max(m, n).
  double rcond = -1;
};
// The pseudoinverse (Moore and Penrose) of a [..., m, n]: [..., n, m], by the singular values. The
// gradient assumes that the rank does not change; unlike that of svd it is finite for equal
// singular values.
Tensor pinv(const Tensor& a, const PinvOptions& options = {},
            SourceLine where = SourceLine::here());

struct MatrixNormOptions {
  int row = -2, column = -1;  // the dimensions of the matrices
  bool keepdim = false;
};
// Norms of matrices: "fro" (Frobenius) and "nuc" (the sum of the singular values); 2 and -2, the
// largest and the smallest singular value; 1 and -1, the largest and the smallest sum of |a| over a
// column; inf and -inf, over a row. The largest of nothing is 0, the smallest an error. Only the
// gradient of "nuc" can be differentiated again.
Tensor matrix_norm(const Tensor& a, std::string_view order = "fro",
                   const MatrixNormOptions& options = {}, SourceLine where = SourceLine::here());
Tensor matrix_norm(const Tensor& a, double order, const MatrixNormOptions& options = {},
                   SourceLine where = SourceLine::here());

}  // namespace binade::linalg
