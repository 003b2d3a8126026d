// A pool of worker threads. The caller of parallel_for takes part itself. Each thread has a share
// of neighbouring parts, the same one in every job with as many parts, so that its cache still
// holds the data of the previous job. Threads claim parts one by one; a thread that has finished
// its share takes parts from the ends of the other shares. So a worker that the system has
// preempted delays the job by at most one part, and no thread waits at a barrier for a thread that
// is not running. Workers spin for some 50 microseconds after a job, then sleep. A forked child
// starts workers of its own; if the fork came during a job of another thread, it runs serially.
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/fork.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/parallel_probe.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace binade::kernels {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kSpins = 2000;  // pauses of about 25 ns
constexpr int kPartsPerThread = 4;

constinit thread_local bool serial = false;

int default_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    if (const int count = std::atoi(text); count > 0) {
      return std::min(count, kMaxThreads);
    }
  }
  return std::min(usable_cores().count, kMaxThreads);
}

constinit std::atomic<ParallelProbe> parallel_probe{nullptr};

void tell_probe(int threads) {
  if (const ParallelProbe probe = parallel_probe.load(std::memory_order_relaxed)) [[unlikely]] {
    probe(threads);
  }
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The unclaimed parts of one thread's share, packed into one 64-bit word.
class alignas(64) Share {
 public:
  // REQUIRES: all parts of the share are claimed
  void put(uint32_t begin, uint32_t end) {
    word_.store(pack(begin, end), std::memory_order_release);
  }

  // Claims the first part (own share) or the last one (another thread's share); -1 if none is left.
  int64_t claim(bool own) {
    uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      const auto begin = static_cast<uint32_t>(word >> 32), end = static_cast<uint32_t>(word);
      if (begin >= end) {
        return -1;
      }
      const uint64_t rest = own ? pack(begin + 1, end) : pack(begin, end - 1);
      if (word_.compare_exchange_weak(word, rest, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return own ? begin : end - 1;
      }
    }
  }

 private:
  static uint64_t pack(uint32_t begin, uint32_t end) { return uint64_t{begin} << 32 | end; }
  std::atomic<uint64_t> word_{0};
};

class Pool {
 public:
  static Pool& instance() {  // never destroyed: its threads live as long as the process
    static Pool* pool = new Pool;
    return *pool;
  }

  // Runs parts 0 .. parts - 1 of the body's range on up to `threads` threads. Returns false, and
  // does nothing, if another thread's job is running.
  bool run(const RangeBody& body, int64_t count, int parts, int threads) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      return false;
    }
    start_workers(threads - 1);
    body_ = &body;
    count_ = count;
    parts_ = parts;
    failure_ = nullptr;
    threads_.store(threads, std::memory_order_relaxed);
    pending_.store(parts, std::memory_order_relaxed);
    for (int64_t i = 0; i < threads; ++i) {
      shares_[i].put(static_cast<uint32_t>(parts * i / threads),
                     static_cast<uint32_t>(parts * (i + 1) / threads));
    }
    tell_probe(std::min(threads, parts));
    jobs_.fetch_add(1, std::memory_order_release);
    jobs_.notify_all();
    work(0);
    wait_until_done();
    tell_probe(1);
    if (failure_) {
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    return true;
  }

 private:
  void start_workers(int wanted) {  // REQUIRES: mutex_ is held
    if (const uint32_t now = fork_count(); now != forks_) {
      forks_ = now;  // a forked child has none of the threads
      workers_ = 0;
    }
    for (; workers_ < std::min(wanted, kMaxThreads); ++workers_) {
      try {
        std::thread(&Pool::serve, this, workers_ + 1).detach();
      } catch (const std::system_error&) {
        return;  // the system gives no more threads: go on with the present ones
      }
    }
  }

  // A worker: takes part in every job that is open to it.
  void serve(int index) {
    uint32_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && jobs_.load(std::memory_order_acquire) == seen; ++spin) {
        pause();
      }
      jobs_.wait(seen, std::memory_order_acquire);
      seen = jobs_.load(std::memory_order_acquire);
      if (index < threads_.load(std::memory_order_relaxed)) {
        work(index);
      }
    }
  }

  // Runs parts until all are claimed: first from its own share, then from others'. A job ends only
  // when every claimed part is done, so the pointers in it stay valid until then.
  void work(int index) {
    const int threads = threads_.load(std::memory_order_relaxed);
    for (int i = 0; i < threads; ++i) {
      Share& share = shares_[(index + i) % threads];
      for (int64_t part = share.claim(i == 0); part >= 0; part = share.claim(i == 0)) {
        run_part(part);
        if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          pending_.notify_all();
        }
      }
    }
  }

  void run_part(int64_t part) {
    SerialGuard guard;
    try {
      (*body_)(count_ * part / parts_, count_ * (part + 1) / parts_);
    } catch (...) {
      std::lock_guard lock(failure_mutex_);
      if (!failure_) {
        failure_ = std::current_exception();
      }
    }
  }

  void wait_until_done() {
    int left = pending_.load(std::memory_order_acquire);
    for (int spin = 0; left > 0 && spin < kSpins; ++spin) {
      pause();
      left = pending_.load(std::memory_order_acquire);
    }
    while (left > 0) {
      pending_.wait(left, std::memory_order_acquire);
      left = pending_.load(std::memory_order_acquire);
    }
  }

  std::mutex mutex_;  // held while a job runs
  int workers_ = 0;
  uint32_t forks_ = fork_count();
  std::atomic<uint32_t> jobs_{0};  // started so far: what workers wait for
  std::atomic<int> threads_{1};    // that may take part, the caller among them
  std::atomic<int> pending_{0};    // parts of the job that are not done
  const std::unique_ptr<Share[]> shares_{new Share[kMaxThreads]};
  const RangeBody* body_ = nullptr;
  int64_t count_ = 0;
  int64_t parts_ = 0;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void set_parallel_probe(ParallelProbe probe) {
  parallel_probe.store(probe, std::memory_order_relaxed);
}

int threads() { return thread_count().load(std::memory_order_relaxed); }

void set_threads(int count) {
  thread_count().store(count > 0 ? std::min(count, kMaxThreads) : default_threads(),
                       std::memory_order_relaxed);
}

SerialGuard::SerialGuard() : before_(serial) { serial = true; }
SerialGuard::~SerialGuard() { serial = before_; }

void parallel_for(int64_t count, int64_t grain, RangeBody body) {
  if (count <= 0) {
    return;
  }
  if (count <= grain) {  // one part
    return body(0, count);
  }
  grain = std::max<int64_t>(grain, 1);
  const int limit = serial ? 1 : threads();
  const int64_t parts =
      std::min<int64_t>(int64_t(limit) * kPartsPerThread, (count + grain - 1) / grain);
  if (limit <= 1 || parts <= 1 ||
      !Pool::instance().run(body, count, static_cast<int>(parts), limit)) {
    body(0, count);
  }
}

}  // namespace binade::kernels
