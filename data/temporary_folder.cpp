#include <binade/core/io/file_system.h>
#include <binade/data/temporary_folder_internal.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace binade::data::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnd = ".tmp";

// A descriptor with the lock of a directory; -1 if it is not there or another process has the lock.
int lock_directory(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &status) == 0 &&
      status.st_nlink > 0) {
    return file;
  }
  if (file >= 0) {
    ::close(file);
  }
  return -1;
}

bool is_name_of_temporary(std::string_view name, const std::string& target) {
  if (!name.starts_with(target + ".") || !name.ends_with(kEnd)) {
    return false;
  }
  name.remove_prefix(target.size() + 1);
  name.remove_suffix(kEnd.size());
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const fs::path& target, const std::string& marker,
                                 const std::string& text)
    : target_(target) {
  const fs::path parent = target_.parent_path();
  make_directories(parent.empty() ? "." : parent.native());
  remove_leftovers(marker);
  constexpr int kTries = 100;  // a process that starts now may take a new one for a leftover
  for (int i = 0; lock_ < 0; ++i) {
    check(i < kTries, target_.native(), ": cannot make a temporary folder beside it");
    path_ = target_.native() + "." + unpredictable_name() + std::string(kEnd);
    if (make_new_directory(path_.native())) {
      lock_ = lock_directory(path_);
    }
  }
  try {
    OutputFile file((path_ / marker).native());
    file.write(text);
    file.finish();
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    ::close(lock_);
    throw;
  }
}

TemporaryFolder::~TemporaryFolder() {
  if (!renamed_) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ::close(lock_);
}

bool TemporaryFolder::rename_to_target() {
  if (::rename(path_.c_str(), target_.c_str()) == 0) {
    renamed_ = true;
    return true;
  }
  const int code = errno;
  const bool taken = code == ENOTEMPTY || code == EEXIST || code == ENOTDIR;
  check(taken, target_.native(),
        ": cannot give the folder its name: ", std::generic_category().message(code));
  return false;
}

void TemporaryFolder::remove_leftovers(const std::string& marker) const {
  const fs::path parent = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  for (const DirectoryEntry& entry : list_directory(parent.native())) {
    if (!entry.is_directory || !is_name_of_temporary(entry.name, target_.filename().native())) {
      continue;
    }
    const fs::path path = parent / entry.name;
    const int lock = lock_directory(path);
    if (lock < 0) {
      continue;
    }
    std::error_code ignored;
    if (fs::is_empty(path, ignored) || fs::is_regular_file(path / marker, ignored)) {
      fs::remove_all(path, ignored);
    }
    ::close(lock);
  }
}

}  // namespace binade::data::internal
