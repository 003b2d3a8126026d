// FaultyFileSystem wraps another file system for tests. At its k-th modifying call it fails,
// shortens or interrupts the call, or ends the process.
#pragma once
#include <binade/core/io/file_system.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace binade::testing {

// The fault at modifying call number `at` (from 0).
struct Fault {
  enum Kind { kNone, kError, kErrorOnwards, kPowerCut, kKill, kShort, kInterrupt } kind = kNone;
  int64_t at = -1;
  int code = EIO;
};

class FaultyFileSystem : public FileSystem {
 public:
  FaultyFileSystem(FileSystem& files, Fault fault) : files_(files), fault_(fault) {}
  int64_t calls() const { return calls_; }
  bool hit() const { return hit_; }

  // Negative controls: these calls report success and do nothing.
  bool skip_file_sync = false, skip_directory_sync = false;
  // Acts as another process; called before each call for which a race could matter.
  std::function<void()> before_call;

  int open_new(const std::string& path) override {
    return call([&] { return files_.open_new(path); });
  }
  int open_append(const std::string& path, bool empty) override {
    return call([&] { return files_.open_append(path, empty); });
  }
  int open_read(const std::string& path) override {
    before();
    return files_.open_read(path);
  }
  int64_t write(int file, const void* data, size_t bytes) override {
    const bool shorten = fault_.kind == Fault::kShort && calls_ == fault_.at && bytes > 1;
    return call([&] { return files_.write(file, data, shorten ? bytes / 2 : bytes); });
  }
  int64_t read(int file, void* data, size_t bytes, uint64_t offset) override {
    const bool shorten = fault_.kind == Fault::kShort && bytes > 1;
    return files_.read(file, data, shorten ? bytes / 2 : bytes, offset);
  }
  int64_t size(int file) override { return files_.size(file); }
  int sync(int file) override {
    return call([&] { return skip_file_sync ? 0 : files_.sync(file); });
  }
  int close(int file) override {
    const int result = files_.close(file);  // closes it even if the call fails
    return call([&] { return result; });
  }
  int rename(const std::string& from, const std::string& to) override {
    return call([&] { return files_.rename(from, to); });
  }
  int rename_new(const std::string& from, const std::string& to) override {
    return call([&] { return files_.rename_new(from, to); });
  }
  int remove_file(const std::string& path) override {
    return call([&] { return files_.remove_file(path); });
  }
  int remove_directory(const std::string& path) override {
    return call([&] { return files_.remove_directory(path); });
  }
  int make_directory(const std::string& path) override {
    return call([&] { return files_.make_directory(path); });
  }
  int sync_directory(const std::string& path) override {
    return call([&] { return skip_directory_sync ? 0 : files_.sync_directory(path); });
  }
  int list(const std::string& path, std::vector<DirectoryEntry>& entries) override {
    return files_.list(path, entries);
  }
  int stamp(const std::string& path, DirectoryStamp& stamp) override {
    return files_.stamp(path, stamp);
  }
  int64_t free_bytes(const std::string& path) override { return files_.free_bytes(path); }
  int64_t modified(const std::string& path) override {
    before();
    return files_.modified(path);
  }
  int touch(const std::string& path) override { return files_.touch(path); }
  int is_same_file(const std::string& a, const std::string& b) override {
    return files_.is_same_file(a, b);
  }

 private:
  void before() {
    if (before_call) {
      before_call();
    }
  }
  template <class Call>
  auto call(const Call& real) -> decltype(real()) {
    before();
    const int64_t number = calls_++;
    const bool first = number == fault_.at;
    const bool later = number > fault_.at && fault_.at >= 0;
    hit_ |= first;
    if (first && fault_.kind == Fault::kKill) {
      ::kill(::getpid(), SIGKILL);
    }
    const bool down = fault_.kind == Fault::kErrorOnwards || fault_.kind == Fault::kPowerCut;
    const bool fails = (first && fault_.kind == Fault::kError) || ((first || later) && down);
    if (fails || (first && fault_.kind == Fault::kInterrupt)) {
      errno = fails ? fault_.code : EINTR;
      return -1;
    }
    return real();
  }

  FileSystem& files_;
  Fault fault_;
  int64_t calls_ = 0;
  bool hit_ = false;
};

}  // namespace binade::testing
