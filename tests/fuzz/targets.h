// Fuzz targets: functions that take bytes as a stranger could have written them. libFuzzer drives
// them (fuzz_main.cpp, .ci/fuzz), and corpus_test.cpp runs every stored input in the default tests.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace binade::fuzz {

using Bytes = std::span<const uint8_t>;

// A rule was broken: what was read contradicts itself, or an error has no good message.
class Failure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
inline void require(bool holds, const char* rule) {
  if (!holds) {
    throw Failure(rule);
  }
}

struct Target {
  const char* name;
  void (*parse)(Bytes);  // may throw Error, which is how a bad input is refused
};

std::span<const Target> targets();
const Target* find_target(std::string_view name);  // null if unknown

// Parses one input. Returns the message of the Error that refused it, empty if it was accepted.
// Throws Failure if that message is empty, long or not printable; whatever else the target throws
// goes through.
std::string run(const Target& target, Bytes bytes);

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file without a name that holds these bytes, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace binade::fuzz
