// Ref<T>: an intrusive counted pointer. T has an atomic<uint32_t or uint64_t> `refs` that starts at
// 1 and `static void destroy(T*) noexcept`.
#pragma once
#include <atomic>
#include <utility>

namespace binade {

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
  bool unique() const { return pointer_->refs.load(std::memory_order_acquire) == 1; }

 private:
  static void add(T* pointer) { pointer->refs.fetch_add(1, std::memory_order_relaxed); }
  static void drop(T* pointer) {  // the sole owner needs no read-modify-write
    if (pointer->refs.load(std::memory_order_acquire) == 1 ||
        pointer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      T::destroy(pointer);
    }
  }

  T* pointer_ = nullptr;
};

}  // namespace binade
