// BatchBuilder: makes batch `number` of an epoch, as a pure function of (seed, epoch, number) and,
// for an IterableDataset, of the rows for that number. Internal to the loader; all workers use it
// at once.
#pragma once
#include <binade/data/collate/batch_assembler_internal.h>
#include <binade/data/sampling/epoch_plan_internal.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>

namespace binade::data {

class ReadAhead;
class RowSource;

// The state of a worker; other threads may read it while it works.
class SampleWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Marks the start of one sample (a dataset index); -1 means idle.
  void begin(int64_t index) {
    since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    index_.store(index, std::memory_order_release);
  }
  int64_t index() const { return index_.load(std::memory_order_acquire); }
  Clock::time_point since() const {
    return Clock::time_point(Clock::duration(since_.load(std::memory_order_relaxed)));
  }
  // Asks the worker to abandon its batch at the next sample.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void rearm() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> index_{-1};
  std::atomic<Clock::rep> since_{0};
  std::atomic<bool> cancelled_{false};
};

// Where the samples of an epoch come from: rows, or a plan.
struct EpochSource {
  std::shared_ptr<RowSource> rows = {};
  std::shared_ptr<const EpochPlan> plan = {};  // random access
  std::shared_ptr<ReadAhead> read_ahead = {};  // of the plan's files; null: workers read them
};

// Memory that a thread keeps from one batch to the next, so that in a steady state it allocates
// nothing.
struct BuildScratch {
  SampleWatch watch;
  std::vector<Sample> samples;
};

struct BuildTask {
  int64_t epoch, number;
  EpochSource source;
};

class BatchBuilder {
 public:
  // Throws Error on bad options. `options` must outlive the builder.
  BatchBuilder(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  BatchBuilder(std::shared_ptr<const IterableDataset> dataset, const LoaderOptions& options);

  // Per epoch, for this shard; -1 if unknown.
  int64_t samples() const;
  int64_t batches() const;
  // `done`: how many samples, of all shards, the epoch leaves out at its beginning.
  EpochSource open(int64_t epoch, int64_t first_batch, int64_t done) const;
  // Never throws: errors are in the result. A cancelled batch is incomplete. `out` may be an old
  // batch, whose memory is reused.
  void build(const BuildTask& task, BuildScratch& scratch, BuiltBatch& out) const;
  const std::shared_ptr<const Dataset>& dataset() const { return dataset_; }  // null for rows
  std::string describe(int64_t index) const;
  DataIdentity identity() const;

 private:
  struct Job;
  void check_options(int channels);
  std::vector<int64_t> measure() const;
  void fill(Job& job) const;
  void fill_from(Job& job, RowSource& rows) const;
  template <class Get>
  bool take(Job& job, int64_t index, int64_t draw, Get&& get) const;
  template <class Get>
  bool read(Job& job, int64_t index, ImageRequest& request, const Get& get, Sample& sample) const;
  static constexpr int64_t kNoPlace = -1;
  bool take_at(Job& job, int64_t position, int64_t place = kNoPlace) const;
  void read_sample(Job& job, int64_t index, int64_t place, ImageRequest& request,
                   Sample& sample) const;
  void will_need(const EpochPlan& plan, int64_t number) const;
  void change(Job& job, Sample& sample, size_t first_step, const philox::Stream& random) const;
  void replace(Job& job, int64_t position) const;
  void assemble(Job& job) const;
  std::string named(int64_t index) const;
  [[noreturn]] void rethrow_named(int64_t index) const;

  std::shared_ptr<const Dataset> dataset_;  // one of the two
  std::shared_ptr<const IterableDataset> iterable_;
  const LoaderOptions& options_;
  std::optional<BatchAssembler> assembler_;
  std::unique_ptr<Plans> plans_;  // random access
};

}  // namespace binade::data
