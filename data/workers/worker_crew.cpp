// Threads that build batches.
#include <binade/core/observe/timeline.h>
#include <binade/data/workers/worker_crew_internal.h>
#include <binade/data/workers/worker_pool.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/fork.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>

namespace binade::data {

namespace {

constexpr int kMostThreads = 256;

}  // namespace

int default_workers() {
  constexpr int kMost = 8;
  return std::min(kernels::usable_cores().count, kMost);
}

WorkerPool::WorkerPool(int threads) {
  check(threads == -1 || (threads >= 1 && threads <= kMostThreads), "worker pool: got ", threads,
        " threads, expected -1 or 1 to ", kMostThreads);
  crew_ = std::make_shared<WorkerCrew>(threads == -1 ? default_workers() : threads);
}

WorkerPool::~WorkerPool() = default;

int WorkerPool::threads() const { return crew_->threads(); }

void WorkerPool::resize(int threads) {
  check(threads >= 1 && threads <= kMostThreads, "worker pool: got ", threads,
        " threads, expected 1 to ", kMostThreads);
  crew_->resize(threads);
}

// Threads own the crew while they run, so none runs now, or this is a forked child.
WorkerCrew::~WorkerCrew() {
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) {
      worker.thread.detach();
    }
  }
}

bool WorkerCrew::has_its_threads() const {
  const int64_t forks = forks_;
  return forks == kNoThreads || forks == fork_count();
}

void WorkerCrew::join(const std::weak_ptr<Client>& client) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const std::weak_ptr<Client>& other) {
    return !other.owner_before(client) && !client.owner_before(other);
  };
  if (std::none_of(clients_.begin(), clients_.end(), same)) {
    clients_.push_back(client);
  }
  start();
}

int WorkerCrew::threads() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void WorkerCrew::resize(int threads) {
  const std::lock_guard lock(mutex_);
  wanted_ = threads;
  ++signals_;
  changed_.notify_all();
}

void WorkerCrew::start() {
  workers_.remove_if([](Worker& worker) {
    if (worker.done && worker.thread.joinable()) {
      worker.thread.join();
    }
    return worker.done;
  });
  while (running_ < wanted_) {
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([self = shared_from_this(), &worker] { self->run(worker); });
    } catch (const std::exception& error) {
      workers_.pop_back();
      fail("loader: cannot start worker ", running_, ": ", error.what());
    }
    forks_ = fork_count();
    ++running_;
  }
}

void WorkerCrew::leave(const Client& client, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  std::erase_if(clients_, [&](const std::weak_ptr<Client>& other) {
    const std::shared_ptr<Client> held = other.lock();
    return held == nullptr || held.get() == &client;
  });
  ++signals_;
  changed_.notify_all();
  returned_.wait_for(lock, patience, [&] {
    return clients_.empty() ? running_ == 0
                            : std::none_of(workers_.begin(), workers_.end(), [&](const Worker& w) {
                                return w.client.load() == &client;
                              });
  });
  for (Worker& worker : workers_) {
    if (!worker.done && (clients_.empty() || worker.client.load() == &client)) {
      abandon(worker);
    }
  }
  if (clients_.empty()) {
    workers_.remove_if([](Worker& worker) {
      if (worker.done && worker.thread.joinable()) {
        worker.thread.join();
      }
      return worker.done;
    });
  } else {
    start();
  }
}

void WorkerCrew::abandon(Worker& worker) {
  if (worker.thread.joinable()) {
    worker.thread.detach();
    --running_;
  }
}

void WorkerCrew::notify_one() {
  const std::lock_guard lock(mutex_);
  ++signals_;
  changed_.notify_one();
}

void WorkerCrew::notify_all() {
  const std::lock_guard lock(mutex_);
  ++signals_;
  changed_.notify_all();
}

void WorkerCrew::run(Worker& worker) {
  name_timeline_lane("loader worker");
  const kernels::SerialGuard serial;
  std::vector<std::weak_ptr<Client>> clients;
  std::unique_lock lock(mutex_);
  while (!clients_.empty() && running_ <= wanted_) {
    const uint64_t seen = signals_;
    clients = clients_;
    const size_t first = turn_++;
    lock.unlock();
    const bool worked = work(worker, clients, first);
    lock.lock();
    if (!worker.thread.joinable()) {  // it was abandoned, and another one may have its place
      return;
    }
    returned_.notify_all();
    if (!worked) {
      changed_.wait(lock, [&] { return signals_ != seen; });
    }
  }
  worker.done = true;
  --running_;
  returned_.notify_all();
}

// One batch of the first client that has one to build.
bool WorkerCrew::work(Worker& worker, std::vector<std::weak_ptr<Client>>& clients, size_t first) {
  for (size_t i = 0; i < clients.size(); ++i) {
    const std::shared_ptr<Client> client = clients[(first + i) % clients.size()].lock();
    if (client == nullptr) {
      continue;
    }
    worker.client = client.get();
    const bool worked = client->work(worker);
    worker.client = nullptr;
    if (worked) {
      return true;
    }
  }
  return false;
}

}  // namespace binade::data
