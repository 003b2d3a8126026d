// tril and triu.
#include <binade/core/autograd/op.h>
#include <binade/core/ops/checks_internal.h>
#include <binade/core/ops/triangle.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/triangle.h>

namespace binade {
namespace {

Tensor triangle(const Op& op, const Tensor& x, int64_t diagonal, bool upper) {
  check_defined(op.name, x);
  check(x.dim() >= 2, op.name, ": got shape ", x.sizes(), ", expected [..., rows, columns]");
  Tensor y = empty_like(x);
  kernels::triangle({.x = x, .y = y, .diagonal = diagonal, .upper = upper});
  return op.record({x}, y, save(), [diagonal, upper](const Tensor& dy) -> Grads {
    return {upper ? triu(dy, diagonal) : tril(dy, diagonal)};
  });
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  static constexpr Op kOp{"tril", OpClass::movement, true};
  return triangle(kOp, x, diagonal, false);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  static constexpr Op kOp{"triu", OpClass::movement, true};
  return triangle(kOp, x, diagonal, true);
}

}  // namespace binade
