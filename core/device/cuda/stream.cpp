#include <binade/core/device/cuda/capture_internal.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/device/stream.h>
#include <binade/kernels/cuda/fault.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace binade {
namespace {

using kernels::StreamHandle;

cudaStream_t raw(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
cudaEvent_t raw(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

void check_device(const char* what, Device device) {
  check(!device.is_cpu(), what, ": got the cpu, expected a cuda or emulated device");
}

// Streams are never destroyed, since blocks of the caching allocator refer to them; they are
// reused. A new user only has to wait for work that is still queued.
struct Spares {
  std::mutex mutex;
  std::map<std::pair<int, Stream::Priority>, std::vector<StreamHandle>> streams;
};
Spares& spares() {
  static Spares* instance = new Spares;
  return *instance;
}

StreamHandle take_stream(Device device, Stream::Priority priority) {
  {
    std::lock_guard lock(spares().mutex);
    auto& unused = spares().streams[{device.index, priority}];
    if (!unused.empty()) {
      StreamHandle stream = unused.back();
      unused.pop_back();
      return stream;
    }
  }
  kernels::select_device(device);
  int least = 0, greatest = 0;
  kernels::check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                      "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  kernels::check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                   priority == Stream::high ? greatest : least),
                      "cudaStreamCreateWithPriority");
  return stream;
}

bool is_over(cudaError_t status, const char* what) {
  if (status != cudaErrorNotReady) {
    kernels::check_cuda(status, what);
  } else {
    cudaGetLastError();
  }
  return status == cudaSuccess;
}

}  // namespace

Stream::Stream(Device device, Priority priority) : device_(device) {
  check_device("stream", device);
  handle_ = take_stream(device, priority);
  const auto give_back = [device, priority](StreamHandle stream) {
    std::lock_guard lock(spares().mutex);
    spares().streams[{device.index, priority}].push_back(stream);
  };
  owner_ = std::shared_ptr<void>(handle_, give_back);
}

Stream Stream::current(Device device) {
  check_device("stream", device);
  return {device, kernels::current_stream(device)};
}

void Stream::wait(const Event& event) const {
  kernels::select_device(device_);
  kernels::check_cuda(cudaStreamWaitEvent(raw(*this), raw(event), 0), "cudaStreamWaitEvent");
}

void Stream::synchronize() const {
  kernels::select_device(device_);
  check_not_capturing(device_, "Stream::synchronize", nullptr);
  detail::note_host_sync("Stream::synchronize", device_);
  kernels::check_cuda(cudaStreamSynchronize(raw(*this)), "cudaStreamSynchronize");
  kernels::throw_reported_fault(device_);
}

bool Stream::done() const {
  kernels::select_device(device_);
  check_not_capturing(device_, "Stream::done", nullptr);
  return is_over(cudaStreamQuery(raw(*this)), "cudaStreamQuery");
}

Event::Event(Device device, bool timing)
    : device_(device),
      handle_(nullptr, [](void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }) {
  check_device("event", device);
  kernels::select_device(device);
  cudaEvent_t event = nullptr;
  kernels::check_cuda(
      cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
      "cudaEventCreateWithFlags");
  handle_.reset(event);
}

void Event::record(const Stream& stream) {
  check(stream.device() == device_, "event: got a stream of ", stream.device(),
        ", expected one of ", device_);
  kernels::select_device(device_);
  kernels::check_cuda(cudaEventRecord(raw(*this), raw(stream)), "cudaEventRecord");
}

bool Event::done() const {
  check_not_capturing(device_, "Event::done", nullptr);
  return is_over(cudaEventQuery(raw(*this)), "cudaEventQuery");
}

void Event::synchronize() const {
  check_not_capturing(device_, "Event::synchronize", nullptr);
  detail::note_host_sync("Event::synchronize", device_);
  kernels::check_cuda(cudaEventSynchronize(raw(*this)), "cudaEventSynchronize");
}

double Event::since(const Event& start) const {
  float milliseconds = 0;
  kernels::check_cuda(cudaEventElapsedTime(&milliseconds, raw(start), raw(*this)),
                      "cudaEventElapsedTime");
  return milliseconds;
}

DeviceGuard::DeviceGuard(Device device)
    : before_{device.kind, static_cast<int8_t>(kernels::selected_device())} {
  check_device("device guard", device);
  kernels::select_device(device);
}

DeviceGuard::~DeviceGuard() {
  try {
    kernels::select_device(before_);
  } catch (const Error&) {  // selecting it worked before; the next use reports the error
    cudaGetLastError();
  }
}

}  // namespace binade
