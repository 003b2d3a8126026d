// CachingAllocator: the device memory of one device.
//
// It takes memory from the device in segments and splits it into blocks of 512-byte multiples. Free
// neighbours merge; an allocation takes the smallest free block that fits, at the lowest address.
// There are separate pools for each stream that is current at the allocation (the block's home
// stream), for each size class (up to 1 MiB or above), and for each CUDA graph.
//
// A released block is free at once for its home stream, whose order protects it. A block that other
// streams used waits for an event on each of them. No call waits for the device except flush(),
// which empty_cache() and a failed allocation use.
#pragma once
#include <binade/core/device/cuda/segment_internal.h>
#include <binade/core/device/device_stats.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace binade {

struct AllocatorOptions {
  bool growable = true;  // if the driver can; what it then refuses is plain memory
  bool poison = false;   // fill freed blocks with NaN, in stream order
};

class CachingAllocator {
 public:
  using Stream = kernels::StreamHandle;

  explicit CachingAllocator(Device device, AllocatorOptions options);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // The allocator that tensors on `device` use.
  static CachingAllocator& of(Device device);

  void* allocate(size_t bytes);  // for the current stream; throws OutOfMemory
  void release(void* block) noexcept;
  void record_use(void* block, Stream stream);
  void flush();

  // Graph capture: allocations of this thread come from the private pool `graph`, which keeps its
  // memory until drop_graph(). One capture per device at a time.
  void begin_capture(uint64_t graph, Stream origin);
  void end_capture();
  void drop_graph(uint64_t graph) noexcept;

  DeviceMemoryStats stats() const;
  void reset_peak();
  std::vector<LabelMemory> by_label() const;
  std::vector<MemoryEvent> timeline() const;
  void fail_allocation(int64_t n);

  // For tests: true if segments, neighbours and free lists agree with each other.
  bool consistent() const;

 private:
  struct Pool;
  struct Piece;
  struct Block {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Piece* piece = nullptr;
    Block *before = nullptr, *after = nullptr;  // neighbours in the segment
    bool live = false, free = false;            // neither: waiting for events
    uint32_t label = 0;
    std::vector<Stream> users;  // other than the home stream
    std::vector<void*> events;  // pending
    bool lost_event = false;    // could not be recorded: only flush() frees it
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };
  struct Piece {  // a segment and its blocks
    std::unique_ptr<Segment> segment;
    Pool* pool = nullptr;
    Block *first = nullptr, *last = nullptr;
  };
  struct Key {
    uint64_t graph;
    Stream stream;
    bool small;
    auto operator<=>(const Key&) const = default;
  };
  struct Pool {
    Key key;
    std::set<Block*, BySize> free;
    std::vector<std::unique_ptr<Piece>> pieces;
    size_t reserved = 0;
  };

  Pool& pool_at(const Key& key);
  Block* take(Pool& pool, size_t bytes);
  Block* grow(Pool& pool, size_t bytes);
  Piece* add_piece(Pool& pool, bool growable, size_t bytes, int& error);
  int grow_plain(Pool& pool, size_t bytes, size_t ahead);
  int grow_by(Pool& pool, size_t bytes, size_t ahead);
  void append(Piece& piece, size_t bytes);
  void make_free(Block* block);
  void poison(const Block* block);
  Block* merge(Block* left, Block* right);
  void hold_for_events(Block* block);
  void poll_events();
  void flush_locked();
  void free_waiting();
  void shrink(Pool& pool);
  void trim_piece(Pool& pool, Piece& piece);
  bool capturing_here() const;
  static bool is_capturing(Stream stream);
  std::vector<LabelMemory> by_label_locked() const;
  void note(MemoryEvent::Kind kind, const void* at, size_t bytes, uint32_t label, Stream stream);
  void* take_event();
  [[noreturn]] void out_of_memory(size_t bytes, int error);

  const Device device_;
  AllocatorOptions options_;
  mutable std::mutex mutex_;
  std::map<Key, std::unique_ptr<Pool>> pools_;
  std::unordered_map<void*, Block*> live_;
  std::deque<Block*> waiting_;  // released, waiting for events
  std::vector<void*> spare_events_;
  std::vector<int64_t> label_bytes_;
  std::set<uint64_t> dropped_graphs_;  // destroyed, but some of their blocks are live
  uint64_t capture_graph_ = 0;         // 0: none
  std::thread::id capture_thread_;
  Stream capture_origin_ = nullptr;
  std::vector<MemoryEvent> events_;
  size_t next_event_ = 0;
  DeviceMemoryStats stats_;
  int64_t fail_in_ = 0;
};

}  // namespace binade
