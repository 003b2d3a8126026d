// For builds with the CPU only: streams, graphs, pinned memory and allocator statistics throw or
// report that there is no device. Other builds use core/device/cuda.
#include <binade/core/device/device_info.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/graph.h>
#include <binade/core/device/pinned.h>
#include <binade/kernels/base/error.h>

#ifndef BINADE_WITH_CUDA

namespace binade {
namespace {

[[noreturn]] void no_device(const char* what) {
  fail(what, ": this build has only the CPU; configure with -DBINADE_CUDA=ON for CUDA devices");
}

}  // namespace

DeviceReport device_report() {
  return {.devices = {}, .reason = "this build has only the CPU", .toolkit = {}, .driver = {}};
}

DeviceMemoryStats memory_stats(Device) { no_device("memory_stats"); }
void reset_peak_memory(Device) { no_device("reset_peak_memory"); }
std::vector<LabelMemory> memory_by_label(Device) { no_device("memory_by_label"); }
std::vector<MemoryEvent> memory_timeline(Device) { no_device("memory_timeline"); }
void empty_cache(Device, SourceLine) { no_device("empty_cache"); }
void fail_allocation(Device, int64_t) { no_device("fail_allocation"); }
void device_record_use(Device, void*, kernels::StreamHandle) { no_device("device_record_use"); }

Stream::Stream(Device device, Priority) : device_(device) { no_device("stream"); }
Stream Stream::current(Device) { no_device("stream"); }
void Stream::wait(const Event&) const {}
void Stream::synchronize() const {}
bool Stream::done() const { return true; }
Event::Event(Device device, bool) : device_(device), handle_(nullptr, [](void*) {}) {
  no_device("event");
}
void Event::record(const Stream&) {}
bool Event::done() const { return true; }
void Event::synchronize() const {}
double Event::since(const Event&) const { return 0; }
DeviceGuard::DeviceGuard(Device) { no_device("device guard"); }
DeviceGuard::~DeviceGuard() = default;

Graph::Graph(Device device) : device_(device), stream_(device) {}
Graph::~Graph() = default;
void Graph::capture(const std::function<void()>&) {}
void Graph::replay() const {}
bool is_capturing(Device) { return false; }

PinnedBuffer::PinnedBuffer(Device, size_t) { no_device("pinned buffer"); }
PinnedBuffer::PinnedBuffer(PinnedBuffer&&) noexcept {}
PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&&) noexcept { return *this; }
PinnedBuffer::~PinnedBuffer() = default;
void PinnedBuffer::used_on(const Stream&) {}
PinnedStats pinned_stats() { return {}; }
void empty_pinned_cache() {}
Uploader::Uploader(Device device) : device_(device), stream_(device), copied_(device) {}
std::byte* Uploader::copy(PinnedBuffer) { return nullptr; }
void Uploader::ready() {}

}  // namespace binade

#endif
