// Ref<T>: an intrusive counted pointer. T has an atomic<uint32_t or uint64_t> `refs` that starts at
// 1 and `static void destroy(T*) noexcept`.
#pragma once
#include <atomic>
#include <utility>

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 32)
#define BINADE_HAS_SINGLE_THREADED 1
extern "C" char __libc_single_threaded;  // NOLINT: as <sys/single_threaded.h> declares it
#endif
#endif

namespace binade {

namespace detail {

// True only if the calling thread is the only one in the process. glibc keeps the variable, and
// std::shared_ptr uses it too:
// - pthread_create() clears it before the new thread starts. All threads come from there: those of
//   std::thread, OpenMP, CUDA, NCCL, libraries that dlopen() loads, and timers with SIGEV_THREAD.
// - The end of a thread does not set it again. A later glibc may set it when no other thread is
//   left, which would be right as well.
// - A child of fork() inherits it. The child has one thread and its own counters, because no
//   counter is in memory that processes share. So both values are right.
// A thread that the pthread_create() of this glibc did not make must not touch tensors: one of a
// bare clone(), or of a second glibc that dlmopen() loads. Nor must a signal handler, which may run
// between a load and a store. Other C libraries have no such variable, and counters stay atomic.
inline bool single_threaded() {
#ifdef BINADE_HAS_SINGLE_THREADED
  return __libc_single_threaded;
#else
  return false;
#endif
}

// Changes of a counter that threads share. Both return the value before. While there is one thread
// they need no locked instruction: only this thread could start another one, and it does not do so
// between the load and the store. All that it stored happens before what a new thread does.
template <class T>
inline T count_up(std::atomic<T>& counter, T by = 1) {
  if (single_threaded()) {
    const T before = counter.load(std::memory_order_relaxed);
    counter.store(before + by, std::memory_order_relaxed);
    return before;
  }
  return counter.fetch_add(by, std::memory_order_relaxed);
}
template <class T>
inline T count_down(std::atomic<T>& counter, T by = 1) {
  if (single_threaded()) {
    const T before = counter.load(std::memory_order_relaxed);
    counter.store(before - by, std::memory_order_relaxed);
    return before;
  }
  return counter.fetch_sub(by, std::memory_order_acq_rel);
}

}  // namespace detail

template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref adopt(T* pointer) {
    Ref ref;
    ref.pointer_ = pointer;
    return ref;
  }
  static Ref share(T* pointer) {
    add(pointer);
    return adopt(pointer);
  }
  Ref(const Ref& other) noexcept : pointer_(other.pointer_) {
    if (pointer_) {
      add(pointer_);
    }
  }
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() {
    if (pointer_) {
      drop(pointer_);
    }
  }

  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  // Gives up the pointer, which keeps its count.
  T* leave() { return std::exchange(pointer_, nullptr); }
  // Takes one from the count. Returns true if it was the last one: the caller destroys the object.
  static bool drop_one(T* pointer) {  // the sole owner needs no read-modify-write
    return pointer->refs.load(std::memory_order_acquire) == 1 ||
           detail::count_down(pointer->refs) == 1;
  }
  bool unique() const { return pointer_->refs.load(std::memory_order_acquire) == 1; }

 private:
  static void add(T* pointer) { detail::count_up(pointer->refs); }
  static void drop(T* pointer) {
    if (drop_one(pointer)) {
      T::destroy(pointer);
    }
  }

  T* pointer_ = nullptr;
};

}  // namespace binade
