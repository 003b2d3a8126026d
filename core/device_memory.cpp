// Builds for the CPU only: there is no device. Others have core/cuda.
#include <binade/core/device_memory.h>
#include <binade/kernels/base/error.h>

#ifndef BINADE_WITH_CUDA

namespace binade {
namespace {

[[noreturn]] void no_device(Device device) {
  fail("device: got ", device, ", but this build has only the CPU");
}

}  // namespace

void* device_allocate(Device device, size_t) { no_device(device); }
void device_release(Device, void*, size_t) noexcept {}
void device_copy(void*, Device to, const void*, Device from, size_t) {
  no_device(to.is_cpu() ? from : to);
}
void synchronize_stream(Device device) {
  if (!device.is_cpu()) {
    no_device(device);
  }
}
void synchronize(Device device) { synchronize_stream(device); }

}  // namespace binade

#endif
