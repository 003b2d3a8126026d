// Moving a tensor to another device.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// x on `device`, x itself where it is there. The gradient moves back.
Tensor to_device(const Tensor& x, Device device);

}  // namespace binade
