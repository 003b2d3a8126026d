// launch_kernel() for the CUDA runtime; host execution has its own in host/queue.cpp.
#include <binade/kernels/cuda/device.cuh>

#ifndef BINADE_HOST_EXECUTION

namespace binade::kernels {

void launch_kernel(const Launch& config, const void* kernel, void** arguments) {
  constexpr size_t kWithoutAsking = 48 * 1024;
  cudaError_t status = cudaSuccess;
  if (config.shared_bytes > kWithoutAsking) {
    status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(config.shared_bytes));
  }
  if (status == cudaSuccess) {
    cudaLaunchConfig_t launch = {};
    launch.gridDim = config.grid;
    launch.blockDim = config.block;
    launch.dynamicSmemBytes = config.shared_bytes;
    launch.stream = static_cast<cudaStream_t>(launch_stream());
    status = cudaLaunchKernelExC(&launch, kernel, arguments);
  }
  finish_launch(status, config);
}

}  // namespace binade::kernels

#endif
