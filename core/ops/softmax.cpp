// softmax and log_softmax along one dimension.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/softmax.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/softmax/softmax.h>

namespace binade {
namespace {

// y_i = exp(x_i) / sum_j exp(x_j), or its logarithm.
Tensor softmax_of(const Op& op, const Tensor& x_, int dim, bool log) {
  auto [x] = op.enter(x_);
  check_floating(op.name, x);
  const int d = wrap_dim(op.name, dim, x.dim());
  Tensor y = empty_like(x);
  kernels::softmax_forward({.x = x, .y = y, .dim = d, .log = log});
  return op.record({x}, y, save(y),
                   [d, log](const Tensor& dy, Needs needs, const Tensor& y) -> Grads {
                     // dx = y (dy - sum(dy y)); for the logarithm dx = dy - exp(y) sum(dy)
                     if (grad_enabled()) {
                       return {log ? sub(dy, mul(exp(y), sum(dy, {d}, true)))
                                   : mul(y, sub(dy, sum(mul(dy, y), {d}, true)))};
                     }
                     Tensor dx = needs.out_like(0, y);
                     kernels::softmax_backward({.y = y, .dy = dy, .dx = dx, .dim = d, .log = log});
                     return {dx};
                   });
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  static constexpr Op kOp{"softmax", OpClass::reduction, true};
  return softmax_of(kOp, x, dim, false);
}

Tensor log_softmax(const Tensor& x, int dim) {
  static constexpr Op kOp{"log_softmax", OpClass::reduction, true};
  return softmax_of(kOp, x, dim, true);
}

}  // namespace binade
