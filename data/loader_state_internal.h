// LoaderState: the bounded, ordered queue between the workers and next(). Internal to the loader.
// Workers claim batch numbers in order and put results into a ring; next() takes them in order. A
// worker shares ownership of it while it builds a batch, so one that never returns leaves no
// dangling memory. Batches that were used go back through the ring to the workers, which reuse the
// memory of their vectors.
#pragma once
#include <binade/data/batch_builder_internal.h>
#include <binade/data/row_source_internal.h>
#include <binade/data/workers/worker_crew_internal.h>
#include <binade/kernels/base/control_group.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

namespace binade::data {

class LoaderState : public WorkerCrew::Client, public std::enable_shared_from_this<LoaderState> {
 public:
  LoaderState(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  LoaderState(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options);

  // Plans the rest of the epoch after `done` samples of all shards, from batch `first_batch` on.
  void start_epoch(int64_t number, int64_t first_batch, int64_t done);
  bool next(Batch& batch);
  // Stops the workers and waits for them; abandons those that are stuck.
  void close();
  bool work(WorkerCrew::Worker& worker) override;

  const LoaderOptions options;
  const BatchBuilder builder;
  const DataIdentity& identity();
  LoaderStats stats() const;
  std::vector<BadFile> bad_files() const;

 private:
  using Clock = SampleWatch::Clock;
  using Worker = WorkerCrew::Worker;
  struct Slot {
    bool ready = false;
    Worker* worker = nullptr;  // the worker that builds it
    BuiltBatch built;          // or an old batch, whose memory is reused
  };

  class Entry;
  bool has_its_workers() const { return crew_ == nullptr || crew_->has_its_threads(); }
  bool has_work() const;
  void cancel_work();
  BuiltBatch& wait_for_batch(std::unique_lock<std::mutex>& lock);
  void check_timeout(const Slot& slot, Clock::time_point wait_start) const;
  [[noreturn]] void fail_stuck(const SampleWatch& watch, bool is_mine) const;
  void deliver(BuiltBatch& built, Batch& batch);
  void check_image_sizes(const Batch& batch);
  void note_time();
  void note_queue() const;

  std::once_flag identified_;
  DataIdentity identity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::shared_ptr<WorkerCrew> crew_;  // null without workers
  BuildScratch scratch_;              // without workers
  BuiltBatch built_;                  // without workers
  std::vector<Slot> ring_;            // batch b is in slot b % size
  int64_t generation_ = 0;            // number of epochs started, used to drop late results
  int64_t epoch_ = 0, next_claim_ = 0, next_delivery_ = 0;
  int queued_ = 0;       // batches that are ready
  int64_t end_ = 0;      // no batch has this number or more, as far as known
  EpochSource source_;   // of the epoch
  bool open_ = false;    // an epoch is in progress
  bool failed_ = false;  // an error was delivered
  bool stop_ = false;
  Dims image_sizes_;  // [C, H, W] of the first batch
  std::vector<BadFile> bad_;
  std::set<int64_t> bad_indices_;
  LoaderStats stats_;
  const int cores_ = kernels::usable_cores().count;
  Clock::time_point last_time_;
  std::atomic<bool> entered_{false};  // a thread is in next() or start_epoch()
};

}  // namespace binade::data
