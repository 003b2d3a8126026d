// Device memory and the copies between it and the host. Tensor uses these for devices other than
// the CPU; they come from core/device/cuda in builds with CUDA or the emulated device, and are
// errors that say so in builds without.
#pragma once
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/device.h>

#include <cstddef>

namespace binade {

// From the caching allocator of the device, for use on the calling thread's current stream;
// 512-byte aligned. Throws OutOfMemory. release() wants the same size.
void* device_allocate(Device device, size_t bytes);
void device_release(Device device, void* block, size_t bytes) noexcept;

// Copies bytes on the current stream of the device that is not the CPU (the destination's between
// two). A host side that is not pinned is free to be reused when the call returns, and holds the
// bytes then where it is the destination; with pinned memory only the stream's order says so.
void device_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

// Waits for all work of the current stream, or of the whole device. Reports faults that kernels
// found (a target class out of range) as errors.
void synchronize_stream(Device device, SourceLine where = SourceLine::here());
void synchronize(Device device, SourceLine where = SourceLine::here());

}  // namespace binade
