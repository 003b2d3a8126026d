#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/user_call.h>

#include <binade/kernels/cuda/launch.cuh>

namespace binade::kernels {

void* user_call_stream() { return launch_stream(); }

bool user_call_captured() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(launch_stream()), &status),
             "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void wait_for_user_stream() {
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(launch_stream())),
             "cudaStreamSynchronize");
}

void download_for_user(void* to, const void* from, size_t bytes) {
  const auto stream = static_cast<cudaStream_t>(launch_stream());
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace binade::kernels
