// Device memory over the CUDA runtime: the caching allocators, copies, waiting.
#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/device/cuda/capture_internal.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/device/pinned.h>
#include <binade/core/device/stream.h>
#include <binade/kernels/cuda/fault.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <array>
#include <cstring>
#include <optional>

namespace binade {
namespace {

constexpr size_t kMaxDevices = 64;

cudaStream_t current_stream_of(Device device) {
  return static_cast<cudaStream_t>(kernels::current_stream(device));
}

// CUDA promises only that copies between a device and pageable memory might wait. So the host waits
// for them itself, or copies few bytes to pinned memory first.
constexpr size_t kStaged = size_t{1} << 20;

void wait_for_pageable(Device device) {
  const cudaError_t error = cudaStreamSynchronize(current_stream_of(device));
  if (error != cudaSuccess && cudaDeviceSynchronize() != cudaSuccess) {
    // The caller frees the host memory next: the copy must have ended, or the device be lost.
    cudaGetLastError();
  }
  kernels::check_cuda(error, "cudaStreamSynchronize");
}

void copy_and_wait(void* to, const void* from, size_t bytes, Device device, const char* why) {
  detail::note_host_sync(why, device);
  kernels::check_cuda(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, current_stream_of(device)),
      "copy to the device");
  wait_for_pageable(device);
}

// Empty if the system gives no pinned memory: then the host waits for the copy instead, which
// reports a failed device itself.
std::optional<PinnedBuffer> staging(Device device, size_t bytes) {
  try {
    return PinnedBuffer(device, bytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void copy_from_pageable(void* to, const void* from, size_t bytes, Device device) {
  if (bytes > kStaged) {
    copy_and_wait(to, from, bytes, device, "copy of more than 1 MiB from pageable memory");
    return;
  }
  std::optional<PinnedBuffer> staged = staging(device, bytes);
  if (!staged) {
    copy_and_wait(to, from, bytes, device, "copy from pageable memory without pinned memory");
    return;
  }
  std::memcpy(staged->data(), from, bytes);
  kernels::check_cuda(
      cudaMemcpyAsync(to, staged->data(), bytes, cudaMemcpyHostToDevice, current_stream_of(device)),
      "copy to the device");
  try {
    staged->used_on(Stream::current(device));
  } catch (...) {
    wait_for_pageable(device);
    throw;
  }
}

// "pageable, train.cpp:40": for the timeline.
const char* note_of_copy(bool pageable) {
  const detail::HostSyncCall* call = detail::HostSyncCall::current();
  const std::string where =
      call && call->where().line > 0 ? text(", ", call->where().file, ":", call->where().line) : "";
  return timeline_text((pageable ? "pageable" : "pinned") + where);
}

const char* what_reads(const char* copy) {
  const auto* call = kernels::KernelCall::current();
  return call ? call->name() : copy;
}

}  // namespace

CachingAllocator& CachingAllocator::of(Device device) {
  static std::array<std::once_flag, kMaxDevices> made;
  static std::array<CachingAllocator*, kMaxDevices> allocators;  // never destroyed, like streams
  check(!device.is_cpu() && device.index >= 0 && static_cast<size_t>(device.index) < kMaxDevices,
        "device memory: got device ", device, ", expected a cuda or emulated one");
  const auto index = static_cast<size_t>(device.index);
  std::call_once(made[index], [&] {
    kernels::select_device(device);
    allocators[index] = new CachingAllocator(
        device, {.growable = true, .poison = device.kind == Device::kEmulated});
  });
  return *allocators[index];
}

void* device_allocate(Device device, size_t bytes) {
  return CachingAllocator::of(device).allocate(bytes);
}

void device_release(Device device, void* block, size_t) noexcept {
  CachingAllocator::of(device).release(block);
}

void device_record_use(Device device, void* block, kernels::StreamHandle stream) {
  CachingAllocator::of(device).record_use(block, stream);
}

void device_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  const Device device = to_device.is_cpu() ? from_device : to_device;
  if (device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  kernels::select_device(device);
  const bool to_host = to_device.is_cpu();
  const bool pageable =
      bytes > 0 && ((to_host && !is_pinned(to)) || (from_device.is_cpu() && !is_pinned(from)));
  if (to_host && pageable) {  // before the span of the copy, so that a trace has it in the wait
    detail::note_host_sync("copy to the cpu", device);
  }
  TimelineSpan span(Activity::device, TimelineEvent::copy,
                    to_host                ? "copy to the cpu"
                    : from_device.is_cpu() ? "copy to the device"
                                           : "copy on the device");
  if (span.is_recorded()) {
    span.set_bytes(static_cast<double>(bytes));
    span.set_note(note_of_copy(pageable));
  }
  if (to_host || from_device.is_cpu()) {
    check_not_capturing(device, what_reads(to_host ? "copy to the cpu" : "copy from the cpu"),
                        to_host ? to : from);
  }
  if (pageable && !to_host) {
    return copy_from_pageable(to, from, bytes, device);
  }
  cudaError_t error = cudaSuccess;
  if (!to_host && !from_device.is_cpu() && to_device != from_device) {
    // The copy runs after the work that wrote the source, and before later work on the source's
    // stream.
    Event made(from_device), copied(device);
    made.record();
    Stream::current(device).wait(made);
    error = cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes,
                                current_stream_of(device));
    copied.record();
    Stream::current(from_device).wait(copied);
  } else {
    const cudaMemcpyKind kind = to_host                ? cudaMemcpyDeviceToHost
                                : from_device.is_cpu() ? cudaMemcpyHostToDevice
                                                       : cudaMemcpyDeviceToDevice;
    error = cudaMemcpyAsync(to, from, bytes, kind, current_stream_of(device));
  }
  kernels::check_cuda(error, to_host ? "copy to the cpu" : "copy to the device");
  if (to_host) {
    if (pageable) {
      wait_for_pageable(device);
    }
    kernels::throw_reported_fault(device);
  }
}

void synchronize_stream(Device device, SourceLine where) {
  if (!device.is_cpu()) {
    kernels::select_device(device);
    check_not_capturing(device, "synchronize_stream", nullptr);
    const detail::HostSyncCall call("synchronize_stream", where);
    detail::note_host_sync("synchronize_stream", device);
    kernels::check_cuda(cudaStreamSynchronize(current_stream_of(device)), "cudaStreamSynchronize");
    kernels::throw_reported_fault(device);
  }
}

void synchronize(Device device, SourceLine where) {
  if (!device.is_cpu()) {
    kernels::select_device(device);
    check_not_capturing(device, "synchronize", nullptr);
    const detail::HostSyncCall call("synchronize", where);
    detail::note_host_sync("synchronize", device);
    kernels::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    kernels::throw_reported_fault(device);
  }
}

DeviceMemoryStats memory_stats(Device device) { return CachingAllocator::of(device).stats(); }
void reset_peak_memory(Device device) { CachingAllocator::of(device).reset_peak(); }
std::vector<LabelMemory> memory_by_label(Device device) {
  return CachingAllocator::of(device).by_label();
}
std::vector<MemoryEvent> memory_timeline(Device device) {
  return CachingAllocator::of(device).timeline();
}
void empty_cache(Device device, SourceLine where) {
  kernels::select_device(device);
  check_not_capturing(device, "empty_cache", nullptr);
  const detail::HostSyncCall call("empty_cache", where);
  detail::note_host_sync("empty_cache", device);
  CachingAllocator::of(device).flush();
}
void fail_allocation(Device device, int64_t n) { CachingAllocator::of(device).fail_allocation(n); }

}  // namespace binade
