// Segment: a range of device memory that the caching allocator splits into blocks. If the driver
// has virtual memory, it is an address range as large as the device that grows and shrinks at its
// end; else it is one cudaMalloc.
#pragma once
#include <binade/kernels/base/device.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace binade {

class Segment {
 public:
  // All sizes are multiples of this.
  static constexpr size_t kGranularity = size_t{2} << 20;

  // Null, and the cudaError_t in `error`, if there is no memory. A growable segment starts empty, a
  // plain one has `bytes`.
  static std::unique_ptr<Segment> make(Device device, bool growable, size_t bytes, int& error);
  // True if growable segments work: one is made, and grows by kGranularity. The driver may have the
  // calls and still refuse them, as in some containers.
  static bool can_grow(Device device);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool growable() const { return reserved_ > 0; }
  int grow(size_t bytes);  // a cudaError_t
  // Returns the pieces that lie entirely after the first `keep` bytes. No work may be pending on
  // them.
  void shrink(size_t keep);
  int64_t allocations() const { return allocations_; }  // calls that took device memory so far
  int64_t frees() const { return frees_; }

 private:
  explicit Segment(Device device) : device_(device) {}

  Device device_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t reserved_ = 0;         // of addresses; 0 for a plain segment
  std::vector<size_t> pieces_;  // sizes of the mapped pieces, in order
  size_t stale_ = 0;            // bytes after the end that could not be unmapped after an error
  int64_t allocations_ = 0, frees_ = 0;
};

}  // namespace binade
