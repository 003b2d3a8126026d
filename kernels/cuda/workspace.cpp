#include <binade/kernels/cuda/workspace_internal.h>
#ifndef BINADE_HOST_EXECUTION
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

namespace binade::kernels {

void* allocate_device_workspace(Device device, size_t bytes) {
  select_device(device);
  void* block = nullptr;
  check_cuda(cudaMallocAsync(&block, bytes, static_cast<cudaStream_t>(current_stream(device))),
             "cudaMallocAsync");
  return block;
}

void release_device_workspace(Device device, void* block) noexcept {
  if (cudaFreeAsync(block, static_cast<cudaStream_t>(current_stream(device))) != cudaSuccess) {
    cudaGetLastError();  // ignored: whoever waits for the stream gets the cause
  }
}

}  // namespace binade::kernels

#endif
