// Moving a tensor to another device. The gradient moves back.
#include <binade/core/autograd/op.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/ops.h>
#include <binade/core/ops/checks_internal.h>

namespace binade {

Tensor to_device(const Tensor& x, Device device) {
  static constexpr Op kOp{"to_device", OpClass::movement, true};
  check_defined(kOp.name, x);
  if (x.device() == device) {
    return x;
  }
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
