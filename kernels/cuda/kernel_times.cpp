#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/kernel_times.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <chrono>
#include <map>
#include <mutex>
#include <utility>

namespace binade::kernels {
namespace detail {
std::atomic<bool> kernel_times{false};
}

namespace {

constexpr size_t kMostTimes = 500'000;

struct Timed {
  const char* name;
  Device device;
  void* stream;
  cudaEvent_t begin, end;
};

// One moment on both clocks, the device's (as an event) and the host's.
struct Reference {
  cudaEvent_t event = nullptr;
  int64_t host = 0;
};

struct Times {
  std::mutex mutex;
  std::vector<Timed> all;
  std::vector<std::pair<int, cudaEvent_t>> unused;  // by device
  std::map<int, Reference> references;              // by device
  int64_t dropped = 0;
};
Times& times() {  // never destroyed: kernels may run while the program ends
  static auto* instance = new Times;
  return *instance;
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// An event of the selected device; null if there is none. REQUIRES: the lock.
cudaEvent_t take_event(Times& t, int device) {
  for (size_t i = t.unused.size(); i-- > 0;) {
    if (t.unused[i].first == device) {
      const cudaEvent_t event = t.unused[i].second;
      t.unused.erase(t.unused.begin() + static_cast<std::ptrdiff_t>(i));
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  return cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess ? event : nullptr;
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) != cudaSuccess ||
         status != cudaStreamCaptureStatusNone;
}

// Waits for the device once, when its first kernel is timed. REQUIRES: the lock.
bool make_reference(Times& t, int device, cudaStream_t stream) {
  Reference& reference = t.references[device];
  if (reference.event) {
    return true;
  }
  const cudaEvent_t event = take_event(t, device);
  if (!event || cudaEventRecord(event, stream) != cudaSuccess ||
      cudaEventSynchronize(event) != cudaSuccess) {
    return false;
  }
  reference = {event, now()};
  return true;
}

int64_t host_time(const Reference& reference, cudaEvent_t event) {
  float milliseconds = 0;
  check_cuda(cudaEventSynchronize(event), "cudaEventSynchronize");
  check_cuda(cudaEventElapsedTime(&milliseconds, reference.event, event), "cudaEventElapsedTime");
  return reference.host + static_cast<int64_t>(double{milliseconds} * 1e6);
}

}  // namespace

void set_kernel_times(bool on) { detail::kernel_times = on; }

void* begin_kernel_time(Device device) noexcept {
  Times& t = times();
  const auto stream = static_cast<cudaStream_t>(current_stream(device));
  if (is_capturing(stream)) {
    return nullptr;
  }
  try {
    const std::lock_guard lock(t.mutex);
    if (t.all.size() >= kMostTimes || !make_reference(t, device.index, stream)) {
      ++t.dropped;
      return nullptr;
    }
    const cudaEvent_t event = take_event(t, device.index);
    return event && cudaEventRecord(event, stream) == cudaSuccess ? event : nullptr;
  } catch (const std::exception&) {  // no memory: this call has no time
    return nullptr;
  }
}

void end_kernel_time(const char* name, Device device, void* begun) noexcept {
  Times& t = times();
  const auto stream = static_cast<cudaStream_t>(current_stream(device));
  try {
    const std::lock_guard lock(t.mutex);
    const cudaEvent_t event = take_event(t, device.index);
    if (event && cudaEventRecord(event, stream) == cudaSuccess) {
      t.all.push_back({name, device, stream, static_cast<cudaEvent_t>(begun), event});
    } else {
      ++t.dropped;
    }
  } catch (const std::exception&) {
    cudaGetLastError();  // no memory: this call has no time
  }
}

std::vector<KernelTime> take_kernel_times(int64_t& dropped) {
  Times& t = times();
  const std::lock_guard lock(t.mutex);
  std::vector<KernelTime> out;
  for (const Timed& one : t.all) {
    const Reference& reference = t.references.at(one.device.index);
    out.push_back({one.name, one.device, one.stream, host_time(reference, one.begin),
                   host_time(reference, one.end)});
    t.unused.emplace_back(one.device.index, one.begin);
    t.unused.emplace_back(one.device.index, one.end);
  }
  t.all.clear();
  for (auto& [device, reference] : t.references) {
    t.unused.emplace_back(device, reference.event);
  }
  t.references.clear();
  dropped = std::exchange(t.dropped, 0);
  return out;
}

}  // namespace binade::kernels
