// A directory for one test, removed with everything in it. It is in memory (/dev/shm) if there is
// one and TMPDIR is not set: tests that sync a thousand times should not wait for a disk.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace binade::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const bool memory = !std::getenv("TMPDIR") && ::access("/dev/shm", R_OK | W_OK | X_OK) == 0;
    const std::filesystem::path base = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (base / "binade-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) {
      throw std::runtime_error("cannot make a temporary directory");
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace binade::testing
