// Device memory, and copies between it and the host. Tensor uses these for devices other than the
// CPU. They come from core/device/cuda in builds with CUDA or the emulated device; in other builds
// they throw an error that says so.
#pragma once
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/device.h>

#include <cstddef>

namespace binade {

// Allocates from the caching allocator of the device, for use on the calling thread's current
// stream; 512-byte aligned. Throws OutOfMemory. Pass the same size to release().
void* device_allocate(Device device, size_t bytes);
void device_release(Device device, void* block, size_t bytes) noexcept;

// Copies bytes on the device's current stream; between two devices on the destination's. If the
// host side is not pinned, the call returns when that memory may be reused or holds the bytes: it
// waits, except for up to 1 MiB to the device. With pinned memory the call does not wait.
void device_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

// Waits for all work of the current stream, or of the whole device. Throws the faults that kernels
// reported, such as a target class out of range.
void synchronize_stream(Device device, SourceLine where = SourceLine::here());
void synchronize(Device device, SourceLine where = SourceLine::here());

}  // namespace binade
