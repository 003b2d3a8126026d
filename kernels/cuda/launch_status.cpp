// The parts of launch() around the launch itself, for the toolkit and for host execution.
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/launch.cuh>

#include <cstdlib>
#include <string_view>

namespace binade::kernels {

namespace {

bool waits_for_every_kernel() {
  static const bool wait = [] {
    const char* value = std::getenv("BINADE_SYNC");
    return value && std::string_view(value) == "1";
  }();
  return wait;
}

std::string triple(const unsigned n[3]) { return text("(", n[0], ", ", n[1], ", ", n[2], ")"); }

}  // namespace

void* launch_stream() {
  const KernelCall* call = KernelCall::current();
  return current_stream(call ? call->device() : Device{});
}

void finish_launch(int status, const char* name, const unsigned grid[3], const unsigned block[3],
                   size_t shared_bytes) {
  const char* what = "launch";
  if (status == cudaSuccess && waits_for_every_kernel()) {
    auto* stream = static_cast<cudaStream_t>(launch_stream());
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
        capturing == cudaStreamCaptureStatusNone) {
      status = cudaStreamSynchronize(stream);
      what = "kernel";
    }
  }
  if (status != cudaSuccess) [[unlikely]] {
    throw_cuda_error(status, what,
                     text("kernel ", name, ", grid ", triple(grid), ", block ", triple(block), ", ",
                          shared_bytes, " bytes of shared memory"));
  }
}

}  // namespace binade::kernels
