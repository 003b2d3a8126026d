// The machine's file system: each call of FileSystem is one system call or a few. With a root, a
// path below it is walked one component at a time, from an open descriptor of the root, and no
// component may be a link.
#include <binade/core/io/directory_times_internal.h>
#include <binade/core/io/file_system.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace binade {
namespace {

constexpr size_t kLargestTransfer = size_t{1} << 30;  // below the kernel's limit of 2^31 - 4096
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A descriptor that is closed at the end. Closing it leaves errno as it was.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) {
      const int code = errno;
      ::close(file_);
      errno = code;
    }
  }
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

// A write beyond RLIMIT_FSIZE raises SIGXFSZ, which ends a process without a message. While this
// object exists the signal is blocked in this thread; a pending one is consumed, and write()
// returns EFBIG.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~NoFileSizeSignal() {
    const int code = errno;
    const timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0 && code == EFBIG) {
      ::sigtimedwait(&signals_, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = code;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signals_{}, before_{};
};

// Where a path leads: a directory and a name in it.
struct Place {
  Descriptor opened;  // the directory, if it was opened for this path
  int directory;      // -1: an error, in errno
  std::string name;
  int no_follow;  // O_NOFOLLOW below the root
};

class PosixFileSystem : public FileSystem {
 public:
  PosixFileSystem() = default;
  PosixFileSystem(std::string root, int directory)
      : root_(std::move(root)), directory_(directory) {}

  int open_new(const std::string& path) override {
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  }

  int open_append(const std::string& path, bool empty) override {
    // Without O_NONBLOCK, opening a FIFO would wait for a reader.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY;
    return open(path, kFlags | (empty ? O_TRUNC : 0));
  }

  int open_read(const std::string& path) override {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    Descriptor file(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
      return -1;
    }
    if (!S_ISREG(status.st_mode)) {
      errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
      return -1;
    }
    return file.release();
  }

  int64_t write(int file, const void* data, size_t bytes) override {
    const NoFileSizeSignal guard;
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
    const Place a = locate(from), b = locate(to);
    return a.directory == -1 || b.directory == -1
               ? -1
               : ::renameat(a.directory, a.name.c_str(), b.directory, b.name.c_str());
  }

  int rename_new(const std::string& from, const std::string& to) override {
    const Place a = locate(from), b = locate(to);
    if (a.directory == -1 || b.directory == -1) {
      return -1;
    }
    constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
    const auto done = ::syscall(SYS_renameat2, a.directory, a.name.c_str(), b.directory,
                                b.name.c_str(), kNoReplace);
    if (done == 0 || (errno != EINVAL && errno != ENOSYS)) {
      return static_cast<int>(done);
    }
    return link_new(a, b);  // NFS, for example, has no such rename
  }

  int remove_file(const std::string& path) override { return remove(path, 0); }
  int remove_directory(const std::string& path) override { return remove(path, AT_REMOVEDIR); }

  int make_directory(const std::string& path) override {
    const Place at = locate(path);
    return at.directory == -1 ? -1 : ::mkdirat(at.directory, at.name.c_str(), 0777);
  }

  int sync_directory(const std::string& path) override {
    const Descriptor file(open(path, kDirectory));
    if (file.get() < 0) {
      return -1;
    }
    const int result = ::fsync(file.get());
    // Some network file systems cannot sync a directory, and need not.
    return result != 0 && errno == EINVAL ? 0 : result;
  }

  int list(const std::string& path, std::vector<DirectoryEntry>& entries) override {
    Descriptor file(open(path, kDirectory));
    const std::unique_ptr<DIR, CloseDirectory> directory(file.get() < 0 ? nullptr
                                                                        : ::fdopendir(file.get()));
    if (!directory) {
      return -1;
    }
    (void)file.release();
    errno = 0;
    while (const dirent* found = ::readdir(directory.get())) {
      const std::string_view name = found->d_name;
      unsigned char kind = found->d_type;
      if (name != "." && name != ".." && has_kind(::dirfd(directory.get()), found->d_name, kind)) {
        entries.push_back({std::string(name), kind == DT_DIR, kind == DT_REG});
      }
      errno = 0;
    }
    return errno == 0 ? 0 : -1;
  }

  int stamp(const std::string& path, DirectoryStamp& stamp) override {
    // Opening a directory, unlike stat(), makes NFS ask the server for the times.
    const Descriptor file(open(path, kDirectory));
    struct stat status;
    struct statfs system;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 ||
        ::fstatfs(file.get(), &system) != 0) {
      return -1;
    }
    stamp = {.node = status.st_ino,
             .bytes = static_cast<uint64_t>(status.st_size),
             .links = status.st_nlink,
             .modified = nanoseconds(status.st_mtim),
             .changed = nanoseconds(status.st_ctim)};
    return sets_directory_times(static_cast<uint32_t>(system.f_type)) ? 1 : 0;
  }

  int64_t free_bytes(const std::string& path) override {
    const Descriptor file(open(path, kDirectory));
    struct statvfs status;
    if (file.get() < 0 || ::fstatvfs(file.get(), &status) != 0) {
      return -1;
    }
    uint64_t bytes = 0;
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    const bool overflow = __builtin_mul_overflow(static_cast<uint64_t>(status.f_bavail),
                                                 static_cast<uint64_t>(status.f_frsize), &bytes);
    return static_cast<int64_t>(overflow ? kMost : std::min(bytes, kMost));
  }

  int64_t modified(const std::string& path) override {
    const Place at = locate(path);
    struct stat status;
    if (at.directory == -1 ||
        ::fstatat(at.directory, at.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return -1;
    }
    return nanoseconds(status.st_mtim);
  }

  int touch(const std::string& path) override {
    const Place at = locate(path);
    return at.directory == -1
               ? -1
               : ::utimensat(at.directory, at.name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }

  int is_same_file(const std::string& a, const std::string& b) override {
    const Place first = locate(a), second = locate(b);
    struct stat one, other;
    if (first.directory == -1 || second.directory == -1 ||
        ::fstatat(first.directory, first.name.c_str(), &one, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fstatat(second.directory, second.name.c_str(), &other, AT_SYMLINK_NOFOLLOW) != 0) {
      return -1;
    }
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino ? 1 : 0;
  }

 private:
  // The directory that the last component of `path` is in. Nothing above it is a link, if it is
  // below the root.
  Place locate(const std::string& path) const {
    const bool below = !root_.empty() && path.starts_with(root_) &&
                       (path.size() == root_.size() || path[root_.size()] == '/');
    if (!below) {
      return {Descriptor(-1), AT_FDCWD, path, 0};
    }
    Place place{Descriptor(-1), directory_.get(), ".", O_NOFOLLOW};
    for (size_t at = root_.size(); at < path.size();) {
      const size_t end = std::min(path.find('/', at), path.size());
      const std::string name = path.substr(at, end - at);
      at = end + 1;
      if (name.empty() || name == ".") {
        continue;
      }
      if (place.name != "." && !enter(place)) {
        return place;
      }
      place.name = name;
      if (name == "..") {  // no path of ours has one
        errno = EXDEV;
        place.directory = -1;
        return place;
      }
    }
    return place;
  }

  // Opens the directory place.name as the place's directory; false, with errno, on an error.
  static bool enter(Place& place) {
    Descriptor next(::openat(place.directory, place.name.c_str(), kDirectory | O_NOFOLLOW));
    if (next.get() < 0) {
      explain_link(place.directory, place.name);
      place.directory = -1;
      return false;
    }
    place.opened = std::move(next);
    place.directory = place.opened.get();
    return true;
  }

  // Opening a link as a directory fails with ENOTDIR; ELOOP says what it is.
  static void explain_link(int directory, const std::string& name) {
    const int code = errno;
    struct stat status;
    const bool is_link = (code == ENOTDIR || code == ELOOP) &&
                         ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                         S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : code;
  }

  int open(const std::string& path, int flags) const {
    const Place at = locate(path);
    if (at.directory == -1) {
      return -1;
    }
    const int file =
        ::openat(at.directory, at.name.c_str(), flags | at.no_follow | O_CLOEXEC, 0666);
    if (file < 0 && at.no_follow != 0) {
      explain_link(at.directory, at.name);
    }
    return file;
  }

  // Finds the kind of an entry where the directory does not say it. False if it is gone.
  static bool has_kind(int directory, const char* name, unsigned char& kind) {
    struct stat status;
    if (kind == DT_UNKNOWN) {
      if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
      }
      kind = static_cast<unsigned char>(IFTODT(status.st_mode));
    }
    return true;
  }

  int remove(const std::string& path, int flags) const {
    const Place at = locate(path);
    return at.directory == -1 ? -1 : ::unlinkat(at.directory, at.name.c_str(), flags);
  }

  // rename_new() with older calls. link() does not work for directories, so another process could
  // take the name between the check and the rename; a rename replaces at most an empty directory.
  static int link_new(const Place& a, const Place& b) {
    if (::linkat(a.directory, a.name.c_str(), b.directory, b.name.c_str(), 0) == 0) {
      return ::unlinkat(a.directory, a.name.c_str(), 0);
    }
    if (errno != EPERM) {
      return -1;
    }
    struct stat status;
    if (::fstatat(b.directory, b.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      errno = EEXIST;
      return -1;
    }
    return ::renameat(a.directory, a.name.c_str(), b.directory, b.name.c_str());
  }

  std::string root_;  // empty: none
  Descriptor directory_{-1};
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

std::unique_ptr<FileSystem> file_system_below(const std::string& root) {
  std::string path = root;
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  const int directory = ::open(path.c_str(), kDirectory);
  if (directory < 0) {
    list_directory(path);  // throws the error
    fail(path, ": cannot open the directory");
  }
  return std::make_unique<PosixFileSystem>(std::move(path), directory);
}

}  // namespace binade
