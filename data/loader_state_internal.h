// LoaderState: the bounded, ordered queue between the workers and next(). Internal to the loader.
// Workers claim batch numbers in order and put results into a ring; next() takes them in order. The
// workers share ownership of it, so one that never returns leaves no dangling memory.
#pragma once
#include <binade/data/batch_builder_internal.h>
#include <binade/data/row_source_internal.h>
#include <binade/kernels/base/fork.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

namespace binade::data {

class LoaderState : public std::enable_shared_from_this<LoaderState> {
 public:
  LoaderState(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  LoaderState(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options);

  void start_epoch(int64_t number, int64_t first_batch);
  bool next(Batch& batch);
  // Stops the workers and waits for them; abandons those that are stuck.
  void close();

  const LoaderOptions options;
  const BatchBuilder builder;
  const DataIdentity& identity();
  LoaderStats stats() const;
  std::vector<BadFile> bad_files() const;

 private:
  using Clock = SampleWatch::Clock;
  struct Worker {
    SampleWatch watch;
    std::thread thread;
    bool done = false;
  };
  struct Slot {
    bool ready = false;
    Worker* worker = nullptr;  // the worker that builds it
    BuiltBatch built;
  };

  class Entry;
  bool has_its_workers() const;  // false in a forked child: they are threads of the parent
  void cancel_work();
  void start_workers();
  void work(Worker& worker);
  BuiltBatch wait_for_batch(std::unique_lock<std::mutex>& lock);
  void check_timeout(const Slot& slot, Clock::time_point wait_start) const;
  [[noreturn]] void fail_stuck(const Worker& worker) const;
  void deliver(BuiltBatch& built, Batch& batch);
  void check_image_sizes(const Batch& batch);
  void note_time();
  void note_queue() const;

  std::once_flag identified_;
  DataIdentity identity_;
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_, done_;
  std::deque<Worker> workers_;
  std::vector<Slot> ring_;  // batch b is in slot b % size
  int64_t generation_ = 0;  // number of epochs started, used to drop late results
  int64_t epoch_ = 0, next_claim_ = 0, next_delivery_ = 0;
  int queued_ = 0;       // batches that are ready
  int64_t end_ = 0;      // no batch has this number or more, as far as known
  EpochSource source_;   // of the epoch
  bool open_ = false;    // an epoch is in progress
  bool failed_ = false;  // an error was delivered
  bool stop_ = false;
  int running_ = 0;
  Dims image_sizes_;  // [C, H, W] of the first batch
  std::vector<BadFile> bad_;
  std::set<int64_t> bad_indices_;
  LoaderStats stats_;
  Clock::time_point last_time_;
  std::atomic<bool> entered_{false};  // a thread is in next() or start_epoch()
  static constexpr int64_t kNoWorkers = -1;
  std::atomic<int64_t> forks_{kNoWorkers};  // fork_count() when the workers were started
};

}  // namespace binade::data
