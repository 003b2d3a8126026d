// parallel_for: the one door to threads for kernels, over a pool of our own. It runs serially
// inside a SerialGuard (loader workers), inside another parallel_for, and while another thread's
// job has the pool.
//
// Results must not depend on the number of threads. The body may be called with any split of
// [0, count) into ranges, so a body that writes element i from inputs alone is safe; a reduction
// must loop over chunks whose bounds depend on the shape only, store one partial per chunk, and add
// the partials in order.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace binade::kernels {

// A borrowed callable (begin, end): no allocation, no template in the implementation.
class RangeBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, RangeBody>)
      RangeBody(F&& f)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}
  void operator()(int64_t begin, int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int64_t);
};

// Calls body(begin, end) on ranges that cover [0, count), few enough that they have about
// `grain` iterations or more. An exception from a body is rethrown here, once.
void parallel_for(int64_t count, int64_t grain, RangeBody body);

// Threads that parallel_for may use. set_threads(0) restores the default (OMP_NUM_THREADS, else the
// cores of this process's affinity mask).
int threads();
void set_threads(int count);

// While one exists on a thread, parallel_for on that thread runs serially.
class SerialGuard {
 public:
  SerialGuard();
  ~SerialGuard();
  SerialGuard(const SerialGuard&) = delete;
  SerialGuard& operator=(const SerialGuard&) = delete;

 private:
  bool before_;
};

}  // namespace binade::kernels
