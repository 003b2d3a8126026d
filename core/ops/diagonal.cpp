// Diagonals: views of them, and tensors that have one. Each is the gradient of the other.
#include <binade/core/autograd/op.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/diagonal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>

namespace binade {
namespace {

constexpr Op kDiagonal{"diagonal", OpClass::movement, true};

// The elements i of d1 and i + offset of d2.
struct Diagonal {
  int d1, d2;
  int64_t offset;

  // The view of t without d1 and d2, with the diagonal as its last dimension.
  Tensor of(const Tensor& t) const {
    const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
    const int64_t length =
        std::max<int64_t>(std::min(t.sizes()[d1] - down, t.sizes()[d2] - right), 0);
    Dims sizes, strides;
    for (int d = 0; d < t.dim(); ++d) {
      if (d != d1 && d != d2) {
        sizes.push_back(t.sizes()[d]);
        strides.push_back(t.strides()[d]);
      }
    }
    sizes.push_back(length);
    strides.push_back(t.strides()[d1] + t.strides()[d2]);
    return make_view(t, sizes, strides,
                     length > 0 ? down * t.strides()[d1] + right * t.strides()[d2] : 0);
  }
};

// Zeros of these sizes with x on the diagonal: the transpose of the linear map `diagonal`.
Tensor undiagonal(const Tensor& x, const Dims& sizes, const Diagonal& at) {
  Tensor y = zeros(sizes, x.dtype(), x.device());
  kernels::copy({.x = x, .y = at.of(y)});
  return kDiagonal.record({x}, y, save(), [at](const Tensor& dy) -> Grads {
    return {diagonal(dy, at.offset, at.d1, at.d2)};
  });
}

Diagonal diagonal_at(const char* op, int rank, int64_t offset, int dim1, int dim2) {
  const Diagonal at{wrap_dim(op, dim1, rank), wrap_dim(op, dim2, rank), offset};
  constexpr int64_t kLimit = int64_t{1} << 60;
  check(at.d1 != at.d2 && offset > -kLimit && offset < kLimit, op, ": got dimensions ", dim1,
        " and ", dim2, " and offset ", offset, ", expected different dimensions");
  return at;
}

}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int dim1, int dim2) {
  check_defined("diagonal", x);
  check(x.dim() >= 2, "diagonal: got shape ", x.sizes(), ", expected at least two dimensions");
  const Diagonal at = diagonal_at("diagonal", x.dim(), offset, dim1, dim2);
  Tensor y = at.of(x);
  return kDiagonal.record({x}, y, save(), [at, sizes = x.sizes()](const Tensor& dy) -> Grads {
    return {undiagonal(dy, sizes, at)};
  });
}

Tensor diag_embed(const Tensor& x, int64_t offset, int dim1, int dim2) {
  check_defined("diag_embed", x);
  check(x.dim() >= 1 && x.dim() < kMaxDims, "diag_embed: got shape ", x.sizes(), ", expected 1 to ",
        kMaxDims - 1, " dimensions");
  const Diagonal at = diagonal_at("diag_embed", x.dim() + 1, offset, dim1, dim2);
  Dims sizes;
  for (int d = 0, from = 0; d <= x.dim(); ++d) {
    const bool square = d == at.d1 || d == at.d2;
    sizes.push_back(square ? x.size(-1) + (offset < 0 ? -offset : offset) : x.sizes()[from++]);
  }
  element_count(sizes, "diag_embed");
  return undiagonal(x, sizes, at);
}

Tensor diag(const Tensor& x, int64_t offset) {
  check_defined("diag", x);
  check(x.dim() == 1 || x.dim() == 2, "diag: got shape ", x.sizes(),
        ", expected a vector or a matrix; see diagonal() and diag_embed()");
  return x.dim() == 1 ? diag_embed(x, offset) : diagonal(x, offset);
}

}  // namespace binade
