// The device scalars of kernels/optimizer/step_rule.h as tensors.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/tensor/parameter.h>
#include <binade/kernels/optimizer/step_rule.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::optim {

template <class W>
Tensor make_device_scalars(const W& values, Device device) {
  const UnobservedGuard unobserved;  // a scaler may move to the device during a step
  const Tensor host = empty({kernels::kScalarsOf<W>}, DType::f64);
  *host.view().as<W>() = values;
  return host.to(device);
}

// Copies the scalars to the host; waits for a device.
template <class W>
W read_device_scalars(const Tensor& step_scalars) {
  const Tensor host = step_scalars.to(Device{});
  return *host.view().as<W>();
}

// A view of element `index` of a vector of f64.
inline Tensor scalar_at(const Tensor& step_scalars, int64_t index) {
  return make_view(step_scalars, {1}, {1}, index);
}

// The state of a LossScaler on a device.
struct DeviceScaler {
  Device device;
  kernels::ScaleRule rule;
  Tensor step_scalars;  // ScalerScalars
  // The scale that gradients carry, until a step changes the scale. It is a copy, because gradients
  // may live longer than that.
  Tensor tag;
  bool tag_is_old = true;
  bool went_backward = false;                // backward ran from a scaled loss
  std::vector<std::weak_ptr<Arena>> arenas;  // of the optimizers

  DeviceScaler(Device device, const kernels::ScaleRule& rule,
               const kernels::ScalerScalars& step_scalars);
  const Tensor& tag_for_backward();
  // The position of an element as one number (arena, segment, offset), to find the first element
  // that is not finite.
  double position(const std::shared_ptr<Arena>& arena, int segment, int64_t offset);
  std::string parameter_at(double position) const;
  // Throws once if a step met an overflow at the floor of the scale. Synchronises.
  void throw_if_halted();
};

// Says why a gradient is not finite at the smallest scale. `stale`: some gradients came from a
// backward with another scale.
struct FloorError {
  std::string parameter;
  double scale;
  bool stale;
  double loss;
};
std::string explain(const FloorError& error);

}  // namespace binade::optim
