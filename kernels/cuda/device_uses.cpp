#include <binade/kernels/cuda/device_uses_internal.h>
#include <binade/kernels/cuda/kernel_call.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr size_t kMostStreams = 4;  // before streams whose work is done are forgotten

}  // namespace

DeviceUses::~DeviceUses() {
  for (const Use& use : last_) {
    cudaEventDestroy(use.done);
  }
}

void DeviceUses::note(cudaStream_t stream) {
  if (!stream) {
    on_null_stream_ = true;
    return;
  }
  const auto known = std::find_if(last_.begin(), last_.end(),
                                  [&](const Use& use) { return use.stream == stream; });
  if (known != last_.end()) {
    check_cuda(cudaEventRecord(known->done, stream), "cudaEventRecord");
    return;
  }
  if (last_.size() >= kMostStreams) {
    forget_done();
  }
  last_.reserve(last_.size() + 1);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  last_.push_back({stream, event});
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
}

void DeviceUses::forget_done() {
  std::erase_if(last_, [](const Use& use) {
    if (cudaEventQuery(use.done) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    cudaEventDestroy(use.done);
    return true;
  });
}

void DeviceUses::wait() const {
  if (on_null_stream_) {
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  for (const Use& use : last_) {
    check_cuda(cudaEventSynchronize(use.done), "cudaEventSynchronize");
  }
}

cudaGraph_t graph_of_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  // CUDA 12 and 13 differ in the parameters after these, which have defaults.
  check_cuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph),
             "cudaStreamGetCaptureInfo");
  return status == cudaStreamCaptureStatusActive ? graph : nullptr;
}

void keep_with_graph(cudaGraph_t graph, void* object, void (*release)(void* object)) {
  cudaUserObject_t owner = nullptr;
  const cudaError_t error =
      cudaUserObjectCreate(&owner, object, release, 1, cudaUserObjectNoDestructorSync);
  if (error != cudaSuccess) {
    release(object);
  }
  check_cuda(error, "cudaUserObjectCreate");
  const cudaError_t kept = cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove);
  if (kept != cudaSuccess) {
    cudaUserObjectRelease(owner, 1);
  }
  check_cuda(kept, "cudaGraphRetainUserObject");
}

}  // namespace binade::kernels
