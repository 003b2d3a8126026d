// The machine's file system: each call of FileSystem is one system call or a few.
#include <binade/core/io/file_system.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>
#include <system_error>

namespace binade {
namespace {

constexpr size_t kLargestTransfer = size_t{1} << 30;  // below the kernel's limit of 2^31 - 4096

// True if the next byte would exceed RLIMIT_FSIZE. write() would send SIGXFSZ, which ends a process
// that has not asked for it; before the limit it writes less than was asked for.
bool is_at_size_limit(int file) {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return false;
  }
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  return at >= 0 && static_cast<rlim_t>(at) >= limit.rlim_cur;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class PosixFileSystem : public FileSystem {
 public:
  int open_new(const std::string& path) override {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }

  int open_read(const std::string& path) override {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
      return -1;
    }
    struct stat status;
    const int code = ::fstat(file, &status) != 0 ? errno
                     : S_ISREG(status.st_mode)   ? 0
                     : S_ISDIR(status.st_mode)   ? EISDIR
                                                 : EINVAL;
    if (code != 0) {
      ::close(file);
      errno = code;
      return -1;
    }
    return file;
  }

  int64_t write(int file, const void* data, size_t bytes) override {
    if (is_at_size_limit(file)) {
      errno = EFBIG;
      return -1;
    }
    return ::write(file, data, std::min(bytes, kLargestTransfer));
  }

  int64_t read(int file, void* data, size_t bytes, uint64_t offset) override {
    return ::pread(file, data, std::min(bytes, kLargestTransfer), static_cast<off_t>(offset));
  }

  int64_t size(int file) override {
    struct stat status;
    return ::fstat(file, &status) == 0 ? static_cast<int64_t>(status.st_size) : -1;
  }

  int sync(int file) override { return ::fsync(file); }
  int close(int file) override { return ::close(file); }

  int rename(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str());
  }

  int remove_file(const std::string& path) override { return ::unlink(path.c_str()); }
  int remove_directory(const std::string& path) override { return ::rmdir(path.c_str()); }
  int make_directory(const std::string& path) override { return ::mkdir(path.c_str(), 0777); }

  int sync_directory(const std::string& path) override {
    const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) {
      return -1;
    }
    int result = ::fsync(file);
    if (result != 0 && errno == EINVAL) {
      result = 0;  // some network file systems cannot sync a directory, and need not
    }
    const int code = errno;
    ::close(file);
    errno = code;
    return result;
  }

  int list(const std::string& path, std::vector<DirectoryEntry>& entries) override {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    if (!directory) {
      return -1;
    }
    errno = 0;
    while (const dirent* found = ::readdir(directory.get())) {
      const std::string name = found->d_name;
      struct stat status;
      if (name != "." && name != ".." &&
          ::fstatat(::dirfd(directory.get()), found->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        entries.push_back({name, S_ISDIR(status.st_mode), S_ISREG(status.st_mode)});
      }
      errno = 0;
    }
    return errno == 0 ? 0 : -1;
  }

  int64_t free_bytes(const std::string& path) override {
    struct statvfs status;
    if (::statvfs(path.c_str(), &status) != 0) {
      return -1;
    }
    uint64_t bytes = 0;
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    const bool overflow = __builtin_mul_overflow(static_cast<uint64_t>(status.f_bavail),
                                                 static_cast<uint64_t>(status.f_frsize), &bytes);
    return static_cast<int64_t>(overflow ? kMost : std::min(bytes, kMost));
  }
};

}  // namespace

std::string file_kind(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    const int code = errno;
    const bool link = ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
    return code == ENOENT && link ? "a link to nothing" : std::generic_category().message(code);
  }
  return S_ISREG(status.st_mode)    ? "a regular file"
         : S_ISDIR(status.st_mode)  ? "a directory"
         : S_ISFIFO(status.st_mode) ? "a FIFO"
         : S_ISSOCK(status.st_mode) ? "a socket"
                                    : "a device";
}

FileSystem& file_system() {
  static PosixFileSystem files;
  return files;
}

}  // namespace binade
