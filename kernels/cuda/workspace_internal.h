// Workspaces on a GPU for kernels used without core.
#pragma once
#include <binade/kernels/base/device.h>

#include <cstddef>

namespace binade::kernels {

// Allocates from the driver's pool, in the order of the device's current stream.
void* allocate_device_workspace(Device device, size_t bytes);
void release_device_workspace(Device device, void* block) noexcept;

}  // namespace binade::kernels
