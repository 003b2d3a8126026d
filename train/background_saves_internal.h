// BackgroundSaves runs saves in a thread of its own, one after another, from copies of the state.
// Internal to train.
#pragma once
#include <binade/kernels/base/fork.h>
#include <binade/train/checkpoint/host_snapshot_internal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace binade::train {

class BackgroundSaves {
 public:
  BackgroundSaves() = default;
  // Waits; an error that was not reported yet becomes a warning. In a child of fork() it does
  // nothing: the saves are the parent's.
  ~BackgroundSaves();
  BackgroundSaves(const BackgroundSaves&) = delete;
  BackgroundSaves& operator=(const BackgroundSaves&) = delete;

  // Allocates the memory of the copies and writes to it, so that the system has mapped its pages
  // before a step waits for the first copy.
  void reserve(const StateParts& parts);
  // Waits for the saves of earlier steps and throws their error, then copies. Saves of the same
  // step share one copy. The memory is kept for the next one.
  std::shared_ptr<const HostSnapshot> copy(int64_t step, const StateParts& parts);
  void add(std::function<void()> save);
  // Waits until every save has ended. Throws the first error since the last call; saves that come
  // after the error are left out.
  void wait();

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> saves;  // the first one is running
    std::exception_ptr error;
    bool stop = false;
    std::thread thread;
  };
  static void work(Queue& queue);

  uint32_t forks_ = fork_count();
  std::shared_ptr<HostSnapshot> copy_;
  int64_t step_ = -1;  // of the copy
  std::unique_ptr<Queue> queue_ = std::make_unique<Queue>();
};

}  // namespace binade::train
