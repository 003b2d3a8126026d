// Serialises values for the files between the lab and its child processes on the same machine:
// numbers in native byte order, texts and byte strings with their length first.
#pragma once
#include <binade/kernels/base/error.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace binade::lab {

class WireWriter {
 public:
  template <class T>
  WireWriter& add(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text = value;
      add(static_cast<uint64_t>(text.size()));
      bytes_.append(text);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      char raw[sizeof(T)];
      std::memcpy(raw, &value, sizeof(T));
      bytes_.append(raw, sizeof(T));
    }
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads values in the order in which they were written. Throws Error at the end of the bytes.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }
  template <class T>
  T get() {
    if constexpr (std::is_same_v<T, std::string>) {
      const auto size = get<uint64_t>();
      check(size <= left_.size(), "lab: a file between two processes ends too early");
      std::string text(left_.substr(0, size));
      left_.remove_prefix(size);
      return text;
    } else {
      check(sizeof(T) <= left_.size(), "lab: a file between two processes ends too early");
      T value;
      std::memcpy(&value, left_.data(), sizeof(T));
      left_.remove_prefix(sizeof(T));
      return value;
    }
  }
  template <class T>
  void read(T& value) {
    value = get<T>();
  }

 private:
  std::string_view left_;
};

}  // namespace binade::lab
