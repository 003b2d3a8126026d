// launch_kernel() for the CUDA runtime; host execution has its own in host/queue.cpp.
#include <binade/kernels/cuda/device.cuh>

#ifndef BINADE_HOST_EXECUTION

namespace binade::kernels {

void launch_kernel(const Launch& config, const void* kernel, void** arguments) {
  prepare_launch(config, kernel);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t launch = {};
  launch.gridDim = config.grid;
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = config.shared_bytes;
  launch.stream = static_cast<cudaStream_t>(launch_stream());
  launch.attrs = attributes;
  if (config.cluster.x * config.cluster.y * config.cluster.z > 1) {
    cudaLaunchAttribute& attribute = attributes[launch.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = config.cluster.x;
    attribute.val.clusterDim.y = config.cluster.y;
    attribute.val.clusterDim.z = config.cluster.z;
  }
  if (config.overlaps_previous) {
    cudaLaunchAttribute& attribute = attributes[launch.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  finish_launch(cudaLaunchKernelExC(&launch, kernel, arguments), config);
}

}  // namespace binade::kernels

#endif
