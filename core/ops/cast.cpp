// cast, which changes the dtype.
#include <binade/core/autograd/op.h>
#include <binade/core/ops/cast.h>
#include <binade/core/ops/cast_internal.h>
#include <binade/core/ops/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

namespace binade {
namespace {
constexpr Op kCast{"cast", OpClass::movement, true};
}  // namespace

Grads detail::cast_gradient(const Tensor& dy, DType dtype, Needs needs) {
  if (grad_enabled()) {
    return {cast(dy, dtype)};
  }
  Tensor dx = needs.out_like(0, dy);
  if (dx.defined()) {
    kernels::copy({.x = dy, .y = dx});
    dx = kCast.plain({dy}, dx);
  }
  return {dx};
}

Tensor cast(const Tensor& x, DType dtype) {
  check_defined("cast", x);
  if (x.dtype() == dtype) {
    return x;
  }
  Tensor y = empty_like(x, dtype);
  kernels::copy({.x = x, .y = y});
  if (!is_floating(dtype) || !is_floating(x.dtype())) {
    return y;
  }
  return kCast.record({x}, y, save(), [from = x.dtype()](const Tensor& dy, Needs needs) -> Grads {
    return detail::cast_gradient(dy, from, needs);
  });
}

}  // namespace binade
