// HeldFiles: a file system whose calls that change a name or open a file for writing first check
// that this process still has the lock of the run directory. Internal to train.
//
// Everything that a run writes goes through it, so an owner that was stopped until another process
// took the run over changes nothing there. Between the check and the call it may be stopped again;
// no local check can prevent that.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/run_lock_internal.h>

namespace binade::train {

// The calls that it checks throw Error if the lock is lost; all else is as in `files`.
class HeldFiles : public FileSystem {
 public:
  // REQUIRES: the arguments outlive it.
  HeldFiles(FileSystem& files, RunLock& lock) : files_(files), lock_(lock) {}

  int open_new(const std::string& path) override { return held().open_new(path); }
  int open_append(const std::string& path, bool empty) override {
    return held().open_append(path, empty);
  }
  int rename(const std::string& from, const std::string& to) override {
    return held().rename(from, to);
  }
  int rename_new(const std::string& from, const std::string& to) override {
    return held().rename_new(from, to);
  }
  int remove_file(const std::string& path) override { return held().remove_file(path); }
  int remove_directory(const std::string& path) override { return held().remove_directory(path); }
  int make_directory(const std::string& path) override { return held().make_directory(path); }

  int open_read(const std::string& path) override { return files_.open_read(path); }
  int64_t write(int file, const void* data, size_t bytes) override {
    return files_.write(file, data, bytes);
  }
  int64_t read(int file, void* data, size_t bytes, uint64_t offset) override {
    return files_.read(file, data, bytes, offset);
  }
  int64_t size(int file) override { return files_.size(file); }
  int sync(int file) override { return files_.sync(file); }
  int close(int file) override { return files_.close(file); }
  int sync_directory(const std::string& path) override { return files_.sync_directory(path); }
  int list(const std::string& path, std::vector<DirectoryEntry>& entries) override {
    return files_.list(path, entries);
  }
  int stamp(const std::string& path, DirectoryStamp& stamp) override {
    return files_.stamp(path, stamp);
  }
  int64_t free_bytes(const std::string& path) override { return files_.free_bytes(path); }
  int64_t modified(const std::string& path) override { return files_.modified(path); }
  int touch(const std::string& path) override { return files_.touch(path); }
  int is_same_file(const std::string& a, const std::string& b) override {
    return files_.is_same_file(a, b);
  }

 private:
  FileSystem& held() {
    lock_.check_held();
    return files_;
  }

  FileSystem& files_;
  RunLock& lock_;
};

}  // namespace binade::train
