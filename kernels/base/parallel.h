// parallel_for: the only way for kernels to use threads, over a pool of our own. It runs serially
// inside a SerialGuard (loader workers), inside another parallel_for, and while another thread's
// job uses the pool.
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

// A reference to a callable (begin, end): no allocation, no template in the implementation.
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

// Calls body(begin, end) on ranges that cover [0, count). Ranges have about `grain` iterations or
// more. If bodies throw, one of the exceptions is rethrown here.
void parallel_for(int64_t count, int64_t grain, RangeBody body);

// Number of threads that parallel_for may use. set_threads(0) restores the default
// (OMP_NUM_THREADS, else usable_cores() of kernels/base/control_group.h).
int threads();
void set_threads(int count);

// While a thread has one, parallel_for runs serially on that thread.
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
