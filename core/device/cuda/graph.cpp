#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/device/cuda/capture_internal.h>
#include <binade/core/device/graph.h>
#include <binade/core/observe/label.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/kernel_times.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <atomic>

namespace binade {
namespace {

constinit thread_local Device capturing{};  // the cpu: none

// Ends the capture, also after an exception.
class CaptureScope {
 public:
  CaptureScope(Device device, const Stream& stream, uint64_t id)
      : device_(device), stream_(static_cast<cudaStream_t>(stream.handle())), guard_(stream) {
    kernels::select_device(device);
    CachingAllocator::of(device).begin_capture(id, stream.handle());
    const cudaError_t error = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) {
      CachingAllocator::of(device).end_capture();
      kernels::check_cuda(error, "cudaStreamBeginCapture");
    }
    capturing = device;
  }
  ~CaptureScope() {
    if (active_) {
      cudaGraph_t graph = nullptr;
      if (end(graph) == cudaSuccess) {
        cudaGraphDestroy(graph);
      }
      cudaGetLastError();
    }
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  cudaError_t end(cudaGraph_t& graph) {
    active_ = false;
    capturing = {};
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (error != cudaSuccess && cudaStreamIsCapturing(stream_, &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone) {  // the call failed without ending the capture
      cudaGraph_t unused = nullptr;
      if (cudaStreamEndCapture(stream_, &unused) == cudaSuccess) {
        cudaGraphDestroy(unused);
      }
    }
    CachingAllocator::of(device_).end_capture();
    return error;
  }

 private:
  Device device_;
  cudaStream_t stream_;
  StreamGuard guard_;
  bool active_ = true;
};

}  // namespace

bool is_capturing(Device device) { return !device.is_cpu() && capturing == device; }

bool is_pinned(const void* host) {
  cudaPointerAttributes attributes = {};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, host);
  if (error != cudaSuccess) {
    cudaGetLastError();
  }
  return error == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

void check_not_capturing(Device device, const char* what, const void* host) {
  if (!is_capturing(device)) [[likely]] {
    return;
  }
  if (host && is_pinned(host)) {
    return;
  }
  const uint32_t label = detail::thread_state.label;
  fail("graph capture: got ", what, label ? text(" in ", label_text(label)) : std::string(),
       " while a graph is captured on ", device,
       ", where no work runs that the host could wait for; read results after replay(), or use "
       "pinned memory for copies");
}

Graph::Graph(Device device) : device_(device), stream_(device) {}

Graph::~Graph() { reset(); }

void Graph::reset() noexcept {
  if (exec_) {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec_));
    exec_ = nullptr;
  }
  if (id_ != 0) {
    CachingAllocator::of(device_).drop_graph(id_);
    id_ = 0;
  }
}

void Graph::capture(const std::function<void()>& work) {
  static std::atomic<uint64_t> graphs{0};
  reset();
  // The graph cannot use memory that the cache holds, since its blocks come from its own pool; and
  // the cache cannot be emptied while a capture is in progress.
  CachingAllocator::of(device_).flush();
  id_ = ++graphs;
  cudaGraph_t graph = nullptr;
  try {
    CaptureScope scope(device_, stream_, id_);
    work();
    kernels::check_cuda(scope.end(graph), "cudaStreamEndCapture");
    cudaGraphExec_t exec = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    kernels::check_cuda(error, "cudaGraphInstantiate");
    exec_ = exec;
  } catch (...) {
    reset();
    throw;
  }
}

void Graph::replay() const {
  check(captured(), "graph replay: got a graph without work, expected capture() before it");
  kernels::select_device(device_);
  void* timed = kernels::times_kernels() ? kernels::begin_kernel_time(device_) : nullptr;
  kernels::check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec_),
                                      static_cast<cudaStream_t>(kernels::current_stream(device_))),
                      "cudaGraphLaunch");
  if (timed) {
    kernels::end_kernel_time("graph replay", device_, timed);
  }
}

}  // namespace binade
