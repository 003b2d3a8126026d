// Errors. Every error that a user can cause is a binade::Error (or a subclass) whose text reads
// "op: what we got, what we expected, what to do". Text is built only on failure.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace binade {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text), text_(text) {}
  const char* what() const noexcept override { return text_.c_str(); }
  // Adds the place of the error to its text and keeps its type: "(in backward of softmax)".
  void add_context(std::string_view context) { text_.append(" ").append(context); }

 private:
  std::string text_;
};

// An allocation that failed even after the caches were emptied.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

namespace detail {
void append(std::string& text, std::string_view part);
void append_number(std::string& text, long long part);
void append_number(std::string& text, unsigned long long part);
void append_number(std::string& text, double part);  // shortest text that reads back equal
[[noreturn]] void throw_error(const std::string& text);

template <class T>
void append_part(std::string& text, const T& part) {
  if constexpr (std::is_same_v<T, bool>) {
    append(text, part ? "true" : "false");
  } else if constexpr (std::is_same_v<T, char>) {
    append(text, std::string_view(&part, 1));
  } else if constexpr (std::is_floating_point_v<T>) {
    append_number(text, static_cast<double>(part));
  } else if constexpr (std::is_unsigned_v<T>) {
    append_number(text, static_cast<unsigned long long>(part));
  } else if constexpr (std::is_integral_v<T>) {
    append_number(text, static_cast<long long>(part));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    append(text, part);
  } else {
    append(text, to_string(part));  // found by argument-dependent lookup: DType, Dims, Device...
  }
}
}  // namespace detail

// Joins its parts into one text: text("got ", 3, " of ", dims).
template <class... Parts>
[[gnu::cold]] std::string text(const Parts&... parts) {
  std::string out;
  (detail::append_part(out, parts), ...);
  return out;
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  detail::throw_error(text(parts...));
}

// Throws Error with the joined parts unless `ok`. Parts are not formatted while `ok` holds.
template <class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]] {
    fail(parts...);
  }
}

}  // namespace binade
