// The functions of Eigen that the ops of core/linalg use, on batches of host matrices. They are in
// eigen_*.cpp, or in no_eigen.cpp, where each throws an Error. Nothing here allocates a Tensor or
// knows gradients. A function that can fail returns the index of the first matrix without a result,
// or kAllDone; the others are complete either way.
#pragma once
#include <binade/kernels/base/dtype.h>

namespace binade::linalg::host {

// `count` row-major matrices [rows, cols] of f32 or f64 without gaps.
struct Batch {
  DType dtype;
  int64_t count, rows, cols;
  void* data;
};

inline constexpr int64_t kAllDone = -1;

// Solves a x = b in b, by LU with partial pivoting; a has one matrix, for all of b, or as many as
// b.
int64_t solve(const Batch& a, const Batch& b);
// The same with the lower or upper triangle of a.
int64_t solve_triangular(const Batch& a, const Batch& b, bool upper, bool unitriangular);
int64_t invert(const Batch& a);  // in place
// With `logarithm` the sign [count, 1, 1] and log |det|; else `value` is the determinant, and sign
// is not written.
void determinant(const Batch& a, const Batch& sign, const Batch& value, bool logarithm);
// Replaces a by its cofactors, det(a) a^-T, which singular matrices have too.
int64_t cofactors(const Batch& a);
// In place: reads the lower triangle, writes l with zeros above.
int64_t cholesky(const Batch& a);
// q is [rows, k] and r [k, cols]; k is min(rows, cols), or rows.
void qr(const Batch& a, const Batch& q, const Batch& r);
// u is [rows, k] or [rows, rows], s [k, 1], vh [k, cols] or [cols, cols]; without `vectors` only s
// is written.
int64_t svd(const Batch& a, const Batch& u, const Batch& s, const Batch& vh, bool vectors);
// Reads the lower triangle; values [n, 1], columns [n, n], which is not written without `vectors`.
int64_t eigh(const Batch& a, const Batch& values, const Batch& columns, bool vectors);
// x [cols, k] of least norm among the minimisers of |a x - b|, b [rows, k]; ranks has an element
// per matrix.
int64_t lstsq(const Batch& a, const Batch& b, const Batch& x, int64_t* ranks, double rcond);

}  // namespace binade::linalg::host
