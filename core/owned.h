// Owned<T>: an object of a type that only the source file knows.
//
//   class Profiler {            // profiler.h
//     struct State;
//     Owned<State> state_;
//   };
//   Profiler::Profiler() : state_(std::make_unique<State>()) {}
//
// As std::unique_ptr, but it keeps how to delete the object, so T may be incomplete wherever the
// owner is destroyed, and a header that has one compiles in a fraction of the time.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>

namespace binade {

template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(std::nullptr_t) {}  // NOLINT: as std::unique_ptr
  template <class U, class D>
  Owned(std::unique_ptr<U, D> object)  // NOLINT: as std::unique_ptr
      : object_(object.release()), drop_([](T* one) { delete one; }) {}
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), drop_(other.drop_) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      object_ = std::exchange(other.object_, nullptr);
      drop_ = other.drop_;
    }
    return *this;
  }

  void reset() {
    if (T* const object = std::exchange(object_, nullptr)) {
      drop_(object);
    }
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }

 private:
  T* object_ = nullptr;
  void (*drop_)(T*) = nullptr;
};

}  // namespace binade
