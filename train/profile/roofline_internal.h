// The best that a device does, measured. Internal to train.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/train/profile/trace.h>

namespace binade::train {

// A product of two f32 matrices, and a copy that no cache holds: the best of some repeats, in about
// 0.1 s. No observer sees them. Zeros for the emulated device.
Roofline measure_roofline(Device device);

}  // namespace binade::train
