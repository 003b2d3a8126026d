// Pinned host memory, and copies from it to a device ahead of use.
#pragma once
#include <binade/core/device/stream.h>

#include <array>
#include <cstddef>
#include <vector>

namespace binade {

// Page-locked host memory from a cache: copies between it and a device need no intermediate buffer
// and do not block the caller. The memory is reused only after the copies registered with
// used_on(); the destructor does not wait.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device device, size_t bytes);  // 64-byte aligned; throws OutOfMemory
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer();

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  void used_on(const Stream& stream);

 private:
  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Event> uses_;
};

struct PinnedStats {
  int64_t allocated = 0;         // bytes in live buffers
  int64_t reserved = 0;          // including the cache
  int64_t host_allocations = 0;  // calls that reached the driver: constant in a steady state
};
PinnedStats pinned_stats();
void empty_pinned_cache();  // waits for the copies of cached buffers

// Copies to a device on a separate stream, so that a batch arrives before the step that uses it.
//
//   Uploader uploader(device);
//   PinnedBuffer batch(device, bytes);          // filled by a worker
//   std::byte* x = uploader.copy(std::move(batch));
//   ... uploader.ready(); kernels that read x on the current stream ...
//   device_release(device, x, bytes);
//
// The device memory is allocated for the copy stream and counts as used on the caller's current
// stream, so it is reused only when both are done with it.
class Uploader {
 public:
  explicit Uploader(Device device);
  // Queues the copy and returns its target, which must not be used before ready().
  std::byte* copy(PinnedBuffer source);
  // Work queued on the current stream from now on runs after all copies so far.
  void ready();
  const Stream& stream() const { return stream_; }

 private:
  Device device_;
  Stream stream_;
  Event copied_;
};

}  // namespace binade
