// Memory maps of the files of a store.
#include <binade/core/io/file_system.h>
#include <binade/data/store/mapped_file_internal.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace binade::data {
namespace {

[[noreturn]] void fail_file(const std::string& path, const char* what, int code) {
  throw FileError(text(path, ": ", what, ": ", std::generic_category().message(code)), code);
}

}  // namespace

MappedFile::MappedFile(std::string path, uint64_t bytes) : path_(std::move(path)), size_(bytes) {
  check(bytes >= 1 && bytes <= uint64_t{1} << 46, path_, ": got a file of ", bytes,
        " bytes to map, expected 1 to 2^46");
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) {
    fail_file(path_, "cannot open the file", errno);
  }
  try {
    struct stat status {};
    if (::fstat(file_, &status) != 0) {
      fail_file(path_, "cannot read the size", errno);
    }
    check(S_ISREG(status.st_mode), path_, ": is not a regular file");
    check(static_cast<uint64_t>(status.st_size) == bytes, path_, ": has ", status.st_size,
          " bytes, expected ", bytes, "; the file was cut off or changed");
    void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, 0);
    if (data == MAP_FAILED) {
      fail_file(path_, "cannot map the file", errno);
    }
    data_ = static_cast<const std::byte*>(data);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
  if (file_ >= 0) {
    ::close(file_);
  }
}

void MappedFile::check_whole() const {
  struct stat status {};
  check(::fstat(file_, &status) == 0 && static_cast<uint64_t>(status.st_size) >= size_, path_,
        ": became shorter while it was in use, expected ", size_, " bytes");
}

void MappedFile::will_need(uint64_t offset, uint64_t bytes) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = offset / page * page;
  if (offset < size_ && bytes <= size_ - offset) {
    ::madvise(const_cast<std::byte*>(data_) + begin, offset + bytes - begin, MADV_WILLNEED);
  }
}

}  // namespace binade::data
