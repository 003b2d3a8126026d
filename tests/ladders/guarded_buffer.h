// Memory whose end is guarded: a pattern up to the next 256 bytes, then a page that nothing may
// touch.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ladders {

template <class T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t count) : count_(count) {
    constexpr size_t kPage = 4096;
    const size_t used = (count * sizeof(T) + kAlign - 1) / kAlign * kAlign + kAlign;
    bytes_ = (used + kPage - 1) / kPage * kPage;
    void* memory =
        mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_ = static_cast<char*>(memory);
    mprotect(memory_ + bytes_, kPage, PROT_NONE);
    data_ = memory_ + bytes_ - used + kAlign;
    std::memset(memory_, kPattern, bytes_);  // of floats and halves: NaN
  }
  ~GuardedBuffer() { munmap(memory_, bytes_ + 4096); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  T* data() { return reinterpret_cast<T*>(data_); }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return count_; }
  // Whether the bytes around the elements are as they were.
  bool guards_hold() const {
    const auto intact = [](const char* from, const char* to) {
      for (; from != to; ++from) {
        if (*from != static_cast<char>(kPattern)) {
          return false;
        }
      }
      return true;
    };
    return intact(memory_, data_) && intact(data_ + count_ * sizeof(T), memory_ + bytes_);
  }

 private:
  static constexpr size_t kAlign = 256;
  static constexpr int kPattern = 0xff;
  size_t count_, bytes_ = 0;
  char *memory_ = nullptr, *data_ = nullptr;
};

}  // namespace ladders
