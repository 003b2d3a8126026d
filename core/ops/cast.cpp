// cast, which changes the dtype, and to_device.
#include <binade/core/autograd/op.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/ops.h>
#include <binade/core/ops/cast.h>
#include <binade/core/ops/detail/cast_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

namespace binade {
namespace {
constexpr Op kCast{"cast", OpClass::movement, true};
}  // namespace

Tensor detail::compute_vector(const Tensor& t, DType compute) {
  return t.defined() ? contiguous(cast(t, compute)) : t;
}

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
  detail::begin_op(kCast);
  Tensor y = empty_like(x, dtype);
  kernels::copy({.x = x, .y = y});
  if (!is_floating(dtype) || !is_floating(x.dtype())) {
    detail::set_untracked_bits(y, detail::untracked_from(x, detail::kPlainOp));
    return y;
  }
  return kCast.record({x}, y, save(), [from = x.dtype()](const Tensor& dy, Needs needs) -> Grads {
    return detail::cast_gradient(dy, from, needs);
  });
}

Tensor to_device(const Tensor& x, Device device) {
  static constexpr Op kOp{"to_device", OpClass::movement, true};
  check_defined(kOp.name, x);
  if (x.device() == device) {
    return x;
  }
  detail::begin_op(kOp);
  // Bytes cross the bus as they lie in memory, so a strided view is packed where it is.
  const bool dense = is_dense(x.sizes(), x.strides());
  const Tensor source = dense ? x.detach() : contiguous(x.detach());
  Tensor y = empty_strided(x.sizes(), source.strides(), x.dtype(), device);
  device_copy(y.view().data, device, source.view().data, x.device(),
              static_cast<size_t>(x.numel()) * size_of(x.dtype()));
  return kOp.record({x}, y, save(), [from = x.device()](const Tensor& dy) -> Grads {
    return {to_device(dy, from)};
  });
}

}  // namespace binade
