// ReadAhead: threads that read the files of the next samples while workers decode those before, so
// that the latency of storage is hidden. Internal to the loader.
//
// Places are positions in the shard's order of one epoch: 0, 1, ... The files of at most kSamples
// places, or kBytes and one file more per thread, are held at a time.
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/sampling/epoch_plan_internal.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace binade::data {

class ReadAhead {
 public:
  static constexpr int64_t kSamples = 256, kBytes = int64_t(64) << 20;

  // Reads from batch `first_batch` of a plan. Throws Error if threads cannot be started.
  ReadAhead(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const EpochPlan> plan,
            int64_t first_batch, int threads);
  // Waits for the threads, up to two seconds; then a thread that is stuck in a read is abandoned.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The file of a place, which must be asked for once; waits for it. Empty after cancel(), and if
  // the dataset has no file for it. Throws what reading it has thrown.
  std::optional<std::vector<uint8_t>> take(int64_t place);
  // Ends waiting: calls that wait, and later calls, return nothing.
  void cancel();

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the threads, one of which may never return
  std::vector<std::thread> threads_;
};

}  // namespace binade::data
