#include <binade/core/device/device_memory.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/pinned.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <bit>
#include <map>
#include <mutex>
#include <utility>

namespace binade {
namespace {

constexpr size_t kSmallest = 4096;

// Four sizes per doubling: at most a quarter is wasted.
size_t size_class(size_t bytes) {
  if (bytes <= kSmallest) {
    return kSmallest;
  }
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

struct Cached {
  std::byte* data;
  std::vector<Event> uses;
};

struct Cache {
  std::mutex mutex;
  std::map<size_t, std::vector<Cached>> free;
  PinnedStats stats;
};
Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}

bool over(const std::vector<Event>& uses) {
  for (const Event& use : uses) {
    if (!use.done()) {
      return false;
    }
  }
  return true;
}

std::byte* allocate_pinned(Device device, size_t bytes) {
  kernels::select_device(device);
  void* block = nullptr;
  cudaError_t error = cudaHostAlloc(&block, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    empty_pinned_cache();
    error = cudaHostAlloc(&block, bytes, cudaHostAllocDefault);
  }
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const PinnedStats stats = pinned_stats();
    throw OutOfMemory(text("out of pinned memory: got a request for ", bytes, " bytes, with ",
                           stats.allocated, " bytes in use and ", stats.reserved,
                           " reserved; use fewer batches ahead or raise the limit of locked "
                           "memory (ulimit -l)"));
  }
  kernels::check_cuda(error, "cudaHostAlloc");
  return static_cast<std::byte*>(block);
}

}  // namespace

PinnedBuffer::PinnedBuffer(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  const size_t size = size_class(bytes);
  {
    std::lock_guard lock(cache().mutex);
    auto& unused = cache().free[size];
    for (size_t i = 0; i < unused.size() && !data_; ++i) {
      if (over(unused[i].uses)) {
        data_ = unused[i].data;
        unused.erase(unused.begin() + static_cast<std::ptrdiff_t>(i));
        cache().stats.allocated += static_cast<int64_t>(size);
      }
    }
  }
  if (!data_) {
    data_ = allocate_pinned(device, size);
    std::lock_guard lock(cache().mutex);
    cache().stats.allocated += static_cast<int64_t>(size);
    cache().stats.reserved += static_cast<int64_t>(size);
    ++cache().stats.host_allocations;
  }
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      uses_(std::move(other.uses_)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(uses_, other.uses_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_) {
    const size_t size = size_class(bytes_);
    std::lock_guard lock(cache().mutex);
    cache().stats.allocated -= static_cast<int64_t>(size);
    cache().free[size].push_back({data_, std::move(uses_)});
  }
}

void PinnedBuffer::used_on(const Stream& stream) {
  Event event(device_);
  event.record(stream);
  uses_.push_back(std::move(event));
}

PinnedStats pinned_stats() {
  std::lock_guard lock(cache().mutex);
  return cache().stats;
}

void empty_pinned_cache() {
  std::map<size_t, std::vector<Cached>> unused;
  {
    std::lock_guard lock(cache().mutex);
    unused.swap(cache().free);
    for (const auto& [size, blocks] : unused) {
      cache().stats.reserved -= static_cast<int64_t>(size * blocks.size());
    }
  }
  for (auto& [size, blocks] : unused) {
    for (Cached& block : blocks) {
      for (const Event& use : block.uses) {
        use.synchronize();
      }
      kernels::check_cuda(cudaFreeHost(block.data), "cudaFreeHost");
    }
  }
}

Uploader::Uploader(Device device) : device_(device), stream_(device), copied_(device) {}

std::byte* Uploader::copy(PinnedBuffer source) {
  const kernels::StreamHandle user = kernels::current_stream(device_);
  const StreamGuard guard(stream_);
  auto* target = static_cast<std::byte*>(device_allocate(device_, source.size()));
  try {
    device_copy(target, device_, source.data(), Device{}, source.size());
    source.used_on(stream_);
    copied_.record(stream_);
    device_record_use(device_, target, user);
  } catch (...) {
    device_release(device_, target, source.size());
    throw;
  }
  return target;
}

void Uploader::ready() { Stream::current(device_).wait(copied_); }

}  // namespace binade
