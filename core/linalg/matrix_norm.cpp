// matrix_norm, composed of other ops.
#include <binade/core/device/host_sync.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/linalg/matrices_internal.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::linalg {
namespace {

constexpr const char* kMatrixNorm = "matrix_norm";

// The matrices of a in the last two dimensions, and where they were.
struct Matrices {
  Tensor a;
  int row, column;

  Matrices(const Tensor& x, const MatrixNormOptions& options) {
    check_matrices(kMatrixNorm, x);
    row = wrap_dim(kMatrixNorm, options.row, x.dim());
    column = wrap_dim(kMatrixNorm, options.column, x.dim());
    check(row != column, kMatrixNorm, ": got the dimension ", row,
          " for rows and columns, expected two different ones");
    a = movedim(x, Dims{row, column}, Dims{-2, -1});
  }
  Tensor finish(const Tensor& norms, bool keepdim) const {
    return keepdim ? movedim(unsqueeze(unsqueeze(norms, -1), -1), Dims{-2, -1}, Dims{row, column})
                   : norms;
  }
};

// The largest or the smallest element along the last dimension.
Tensor extreme(const Tensor& values, bool largest, const Tensor& a) {
  if (values.size(-1) > 0) {
    return largest ? amax(values, {-1}) : amin(values, {-1});
  }
  check(largest, kMatrixNorm, ": got shape ", a.sizes(),
        ", expected at least one value for the smallest of them; use a positive order");
  return sum(values, {-1});
}

}  // namespace

Tensor matrix_norm(const Tensor& a, std::string_view order, const MatrixNormOptions& options,
                   SourceLine where) {
  check(order == "fro" || order == "nuc", kMatrixNorm, ": got order \"", order,
        "\", expected \"fro\", \"nuc\", or one of the numbers 1, -1, 2, -2, inf, -inf");
  const detail::HostSyncCall waits(kMatrixNorm, where);
  const Matrices matrices(a, options);
  const Tensor norms =
      order == "fro" ? norm(matrices.a, 2, {-2, -1}) : sum(svdvals(matrices.a, where), {-1});
  return matrices.finish(norms, options.keepdim);
}

Tensor matrix_norm(const Tensor& a, double order, const MatrixNormOptions& options,
                   SourceLine where) {
  const double size = std::fabs(order);
  check(size == 1 || size == 2 || std::isinf(size), kMatrixNorm, ": got order ", order,
        ", expected 1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\"");
  const detail::HostSyncCall waits(kMatrixNorm, where);
  const Matrices matrices(a, options);
  const Tensor values =
      size == 2 ? svdvals(matrices.a, where) : norm(matrices.a, 1, {size == 1 ? -2 : -1});
  return matrices.finish(extreme(values, order > 0, a), options.keepdim);
}

}  // namespace binade::linalg
