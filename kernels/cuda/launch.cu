// The runtime's side of launch(); host execution has its own in host/queue.cpp.
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/device.cuh>

#ifndef BINADE_HOST_EXECUTION

namespace binade::kernels {

void launch_kernel(const Launch& config, const void* kernel, void** arguments) {
  const auto describe = [&] {
    return text("kernel ", config.name, ", grid (", config.grid.x, ", ", config.grid.y, ", ",
                config.grid.z, "), block (", config.block.x, ", ", config.block.y, ", ",
                config.block.z, "), ", config.shared_bytes, " bytes of shared memory");
  };
  constexpr size_t kWithoutAsking = 48 * 1024;
  cudaError_t status = cudaSuccess;
  if (config.shared_bytes > kWithoutAsking) {
    status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(config.shared_bytes));
  }
  if (status == cudaSuccess) {
    const KernelCall* call = KernelCall::current();
    cudaLaunchConfig_t launch = {};
    launch.gridDim = config.grid;
    launch.blockDim = config.block;
    launch.dynamicSmemBytes = config.shared_bytes;
    launch.stream = static_cast<cudaStream_t>(current_stream(call ? call->device() : Device{}));
    status = cudaLaunchKernelExC(&launch, kernel, arguments);
  }
  if (status != cudaSuccess) {
    throw_cuda_error(status, "launch", describe());
  }
}

}  // namespace binade::kernels

#endif
