// Device memory over the CUDA runtime.
#include <binade/core/device_memory.h>
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api.h>

namespace binade {
namespace {

cudaStream_t stream_of(Device device) {
  return static_cast<cudaStream_t>(kernels::current_stream(device));
}

}  // namespace

void* device_allocate(Device device, size_t bytes) {
  kernels::select_device(device);
  void* block = nullptr;
  kernels::check_cuda(cudaMalloc(&block, bytes), "cudaMalloc");
  return block;
}

void device_release(Device device, void* block, size_t) noexcept {
  kernels::select_device(device);
  cudaFree(block);
}

void device_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  const Device device = to_device.is_cpu() ? from_device : to_device;
  kernels::select_device(device);
  const cudaMemcpyKind kind = to_device.is_cpu()     ? cudaMemcpyDeviceToHost
                              : from_device.is_cpu() ? cudaMemcpyHostToDevice
                                                     : cudaMemcpyDeviceToDevice;
  kernels::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_of(device)), "cudaMemcpyAsync");
}

void synchronize_stream(Device device) {
  if (!device.is_cpu()) {
    kernels::select_device(device);
    kernels::check_cuda(cudaStreamSynchronize(stream_of(device)), "cudaStreamSynchronize");
  }
}

void synchronize(Device device) {
  if (!device.is_cpu()) {
    kernels::select_device(device);
    kernels::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

}  // namespace binade
