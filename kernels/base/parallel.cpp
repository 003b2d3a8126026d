#include <binade/kernels/base/parallel.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

#ifdef BINADE_OPENMP
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

namespace binade::kernels {
namespace {

constinit thread_local bool serial = false;

int default_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    if (const int count = std::atoi(text); count > 0) {
      return count;
    }
  }
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? std::max(1, CPU_COUNT(&mask)) : 1;
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

// Keeps the first exception of any range.
class FirstException {
 public:
  void capture() {
    std::lock_guard lock(mutex_);
    if (!first_) {
      first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) {
      std::rethrow_exception(first_);
    }
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

int threads() { return thread_count().load(std::memory_order_relaxed); }

void set_threads(int count) {
  thread_count().store(count > 0 ? count : default_threads(), std::memory_order_relaxed);
}

SerialGuard::SerialGuard() : before_(serial) { serial = true; }
SerialGuard::~SerialGuard() { serial = before_; }

void parallel_for(int64_t count, int64_t grain, RangeBody body) {
  if (count <= 0) {
    return;
  }
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = serial ? 1 : std::min<int64_t>(threads(), (count + grain - 1) / grain);
  if (parts <= 1) {
    body(0, count);
    return;
  }
  FirstException failure;
  auto run = [&](int64_t part) {
    SerialGuard guard;
    try {
      body(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      failure.capture();
    }
  };
#ifdef BINADE_OPENMP
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    // The runtime may grant fewer threads than asked: then each takes several parts.
    for (int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
      run(part);
    }
  }
#else
  std::vector<std::thread> workers;  // ThreadSanitizer builds: simple and visible to the tool
  for (int64_t part = 1; part < parts; ++part) {
    workers.emplace_back(run, part);
  }
  run(0);
  for (std::thread& worker : workers) {
    worker.join();
  }
#endif
  failure.rethrow();
}

}  // namespace binade::kernels
