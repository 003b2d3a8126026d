// Vector clocks of the race detector. Each thread counts its own epochs; a clock holds, for every
// thread of the block, the last epoch whose effects it has seen. Clocks are shared and never change
// once two threads hold them, so most joins copy one pointer per thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace binade::kernels::host::race {

using Clock = std::vector<uint32_t>;  // by thread; a null clock has seen nothing
using ClockRef = std::shared_ptr<const Clock>;

// The epochs that a thread had written or seen when it called __threadfence().
struct Snapshot {
  int thread = -1;
  uint32_t own = 0;  // its last epoch before the fence
  ClockRef floor, seen;

  bool covers(int by, uint32_t epoch) const;
  bool empty() const { return own == 0 && seen == nullptr; }
};

class Log;
// The first `length` entries of a log: the part of other blocks' work that a thread may know.
struct Prefix {
  std::shared_ptr<const Log> log;
  size_t length;
};
class Known {
 public:
  void add(const Prefix& prefix);
  void add(const Known& other);
  bool covers(uint32_t block, int by, uint32_t epoch) const;
  const std::vector<Prefix>& prefixes() const { return prefixes_; }
  bool empty() const { return prefixes_.empty(); }
  void clear() { prefixes_.clear(); }

 private:
  std::vector<Prefix> prefixes_;
};

// The snapshots that atomics on one address published, in order.
class Log {
 public:
  void publish(uint32_t block, const Snapshot& snapshot, const ClockRef& block_fenced);
  void link(const Prefix& other);  // what the publisher knew from other logs
  size_t length() const { return entries_.size(); }
  bool covers(size_t length, uint32_t block, int by, uint32_t epoch) const;

 private:
  struct Entry {
    uint32_t block;
    Snapshot snapshot;
    ClockRef block_fenced;
  };
  struct Link {
    size_t from;  // applies to this entry and those after it
    Prefix prefix;
  };
  std::vector<Entry> entries_;
  std::vector<Link> links_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_block_;
};

class Clocks {
 public:
  void begin_grid();
  void begin_block(int threads, uint32_t block);

  uint32_t epoch(int thread) const { return threads_.data()[thread].epoch; }
  // True if `thread` has seen the effects of thread `by` in that epoch. Across blocks this needs
  // fences and atomics.
  bool seen(int thread, int by, uint32_t epoch) const {
    if (thread == by || floor_->data()[by] >= epoch) {
      return true;
    }
    const Clock* const own = threads_.data()[thread].seen.get();
    return (own != nullptr && own->data()[by] >= epoch) ||
           (any_known_ && seen_in_logs(thread, block_, by, epoch));
  }
  bool seen_in_logs(int thread, uint32_t block, int by, uint32_t epoch) const;
  // True if only a fence by `thread` is missing: it knows of these effects from an atomic.
  bool seen_after_fence(int thread, uint32_t block, int by, uint32_t epoch) const;

  void join_all();                             // __syncthreads()
  void join(const std::vector<int>& threads);  // any other barrier
  void fence(int thread);
  void atomic(int thread, uintptr_t address, bool shared_memory);

 private:
  struct ThreadClock {
    uint32_t epoch = 1;
    ClockRef seen;    // in addition to floor_
    Snapshot fenced;  // in addition to the block's
    Known acquired, pending;
  };

  std::vector<ThreadClock> threads_;
  uint32_t block_ = 0;
  // The epochs that every thread has seen by the last __syncthreads().
  std::shared_ptr<Clock> floor_ = std::make_shared<Clock>();
  ClockRef fenced_;
  Known acquired_, pending_;
  // True if any thread has a fence or knows a log: most kernels have neither.
  bool any_fenced_ = false, any_known_ = false;
  std::unordered_map<uintptr_t, std::shared_ptr<Log>> global_logs_, shared_logs_;
};

}  // namespace binade::kernels::host::race
