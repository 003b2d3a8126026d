// Helpers for tests of logs: reading files, and a disk that becomes full.
#pragma once
#include <binade/core/io/file_system.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/core/io/faulty_file_system.h"

namespace binade::train::test {

inline std::string contents(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Accepts `room` more bytes; the last write may be partial.
class FullDisk : public testing::FaultyFileSystem {
 public:
  FullDisk() : FaultyFileSystem(file_system(), {}) {}

  int64_t room = int64_t{1} << 40;
  int64_t write(int file, const void* data, size_t bytes) override {
    if (room == 0) {
      errno = ENOSPC;
      return -1;
    }
    const int64_t part = std::min(room, static_cast<int64_t>(bytes));
    room -= part;
    return file_system().write(file, data, static_cast<size_t>(part));
  }
};

}  // namespace binade::train::test
