// WorkerCrew: the threads of one loader, or of several loaders. Internal to the loader.
//
// A thread asks one client after another for work until there is none, then waits for notify(). A
// client may call the crew while it holds its own lock; the crew calls clients without its lock.
#pragma once
#include <binade/data/batch_builder_internal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace binade::data {

class WorkerCrew : public std::enable_shared_from_this<WorkerCrew> {
 public:
  struct Worker {
    BuildScratch scratch;
    BuiltBatch built;                          // an old batch, whose memory is reused
    std::atomic<const void*> client{nullptr};  // whose batch it builds
    std::thread thread;
    bool done = false;
  };
  class Client {
   public:
    virtual ~Client() = default;
    // Builds one batch; false if there is none to build now.
    virtual bool work(Worker& worker) = 0;
  };

  explicit WorkerCrew(int threads) : wanted_(threads) {}
  ~WorkerCrew();
  WorkerCrew(const WorkerCrew&) = delete;
  WorkerCrew& operator=(const WorkerCrew&) = delete;

  int threads() const;
  // From the next join() on; any that are too many end when they are free.
  void resize(int threads);
  // Adds a client, and starts the threads that are missing. Throws Error if none can be started.
  void join(const std::weak_ptr<Client>& client);
  // Waits until no thread works for the client, and for the end of all threads if it was the last
  // one. After `patience` threads that are stuck are abandoned, and others take their places.
  void leave(const Client& client, std::chrono::milliseconds patience);
  // These say that there may be work: for one batch, or for all threads.
  void notify_one();
  void notify_all();
  // False in a forked child: the threads are those of the parent.
  bool has_its_threads() const;
  // Calls f(worker) for every thread.
  template <class F>
  void for_each(const F& f) const {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_) {
      f(worker);
    }
  }

 private:
  void start();
  void run(Worker& worker);
  void abandon(Worker& worker);
  bool work(Worker& worker, std::vector<std::weak_ptr<Client>>& clients, size_t first);

  int wanted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, returned_;
  std::list<Worker> workers_;  // those of abandoned threads stay: the threads use them
  int running_ = 0;
  std::vector<std::weak_ptr<Client>> clients_;
  size_t turn_ = 0;
  uint64_t signals_ = 0;
  static constexpr int64_t kNoThreads = -1;
  std::atomic<int64_t> forks_{kNoThreads};  // fork_count() when the threads were started
};

// The threads of `workers` = -1.
int default_workers();

}  // namespace binade::data
