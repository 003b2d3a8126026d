// For builds with the CPU only: there is no device. Other builds use core/device/cuda.
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/error.h>

#include <cstring>

#ifndef BINADE_WITH_CUDA

namespace binade {
namespace {

[[noreturn]] void no_device(Device device) {
  fail("device: got ", device, ", but this build has only the CPU");
}

}  // namespace

void* device_allocate(Device device, size_t) { no_device(device); }
void device_release(Device, void*, size_t) noexcept {}
void device_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (!to_device.is_cpu() || !from_device.is_cpu()) {
    no_device(to_device.is_cpu() ? from_device : to_device);
  }
  std::memcpy(to, from, bytes);
}
void synchronize_stream(Device device, SourceLine) {
  if (!device.is_cpu()) {
    no_device(device);
  }
}
void synchronize(Device device, SourceLine where) { synchronize_stream(device, where); }

}  // namespace binade

#endif
