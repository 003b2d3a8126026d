// WorkerPool: threads that several loaders share.
//
//   const auto pool = std::make_shared<data::WorkerPool>(8);
//   data::Loader train(photos, {.pool = pool}), validation(others, {.pool = pool});
//
// A free thread builds the next batch of a loader that wants one, each loader in turn. The batches
// are the same as if each loader had its own threads.
#pragma once
#include <memory>

namespace binade::data {

class WorkerCrew;

class WorkerPool {
 public:
  // -1: min(cores, 8). Throws Error unless -1 or 1 to 256. The threads start with the first epoch
  // of a loader.
  explicit WorkerPool(int threads = -1);
  // Loaders keep the threads alive.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const;
  // So many threads from the next epoch of each loader on; any that are too many end after the
  // batch that they build. Throws Error unless 1 to 256.
  void resize(int threads);

 private:
  friend class LoaderState;
  std::shared_ptr<WorkerCrew> crew_;
};

}  // namespace binade::data
