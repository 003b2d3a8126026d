// MappedFile: a regular file mapped into memory for reading. Internal to data.
//
// The mapping uses the pages of the system's cache: nothing is copied, and the system can take the
// memory back. A file that shrinks while it is mapped would raise SIGBUS on access, so readers call
// check_whole() before every sample, which throws for a shrunken file. Only a process that cuts the
// file within the microseconds between the check and the read can still end the program.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace binade::data {

class MappedFile {
 public:
  // Throws FileError if the file cannot be opened or is not a regular file, and Error unless it has
  // exactly `bytes` bytes, at least 1.
  MappedFile(std::string path, uint64_t bytes);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Throws Error if the file has become shorter.
  void check_whole() const;
  // Checks in one call of 256: for reads of a few bytes, which cost less than the check.
  void check_whole_at_times() const {
    if (calls_.fetch_add(1, std::memory_order_relaxed) % 256 == 0) {
      check_whole();
    }
  }
  // Asks the system to read these bytes ahead; returns at once.
  void will_need(uint64_t offset, uint64_t bytes) const;

 private:
  std::string path_;
  int file_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  mutable std::atomic<uint32_t> calls_{0};
};

}  // namespace binade::data
