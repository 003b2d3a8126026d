#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/core/io/sha256.h>
#include <binade/kernels/base/printable.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace binade {
namespace {

template <class... Parts>
[[noreturn]] void fail_file(int code, const std::string& path, const Parts&... doing) {
  const std::string reason = code == ELOOP ? "it is a link, which is not followed here"
                                           : std::generic_category().message(code);
  throw FileError(printable(text(path, ": cannot ", doing..., ": ", reason)), code);
}

// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

// Writes all of the bytes at the end of an open file, which has `size` bytes.
void write_all(int file, std::span<const std::byte> bytes, const std::string& path, uint64_t size,
               FileSystem& files) {
  while (!bytes.empty()) {
    const int64_t count =
        uninterrupted([&] { return files.write(file, bytes.data(), bytes.size()); });
    if (count <= 0) {
      const int code = count == 0 ? EIO : errno;
      fail_file(code, path, "write ", bytes.size(), " bytes at byte ", size);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    size += static_cast<uint64_t>(count);
  }
}

// Creates a file beside `path` under a name that no other writer uses.
std::unique_ptr<OutputFile> create_temporary(const std::string& path, FileSystem& files) {
  static std::atomic<uint64_t> counter{0};
  for (;;) {
    try {
      const std::string name = text(path, ".", process_token(), "-", counter++, ".tmp");
      return std::make_unique<OutputFile>(name, files);
    } catch (const FileError& error) {
      if (error.code() != EEXIST) {
        throw;
      }
    }
  }
}

// Writes a temporary file beside `path`, syncs it, lets `rename` give it its name, and syncs the
// directory. On an error the temporary file is removed.
template <class Rename>
void write_beside(const std::string& path, const std::function<void(OutputFile&)>& write,
                  FileSystem& files, const Rename& rename) {
  const std::unique_ptr<OutputFile> file = create_temporary(path, files);
  try {
    write(*file);
    file->finish();
    rename(file->path());
  } catch (...) {
    files.remove_file(file->path());
    throw;
  }
  sync_directory(parent_directory(path), files);
}

}  // namespace

bool FileError::is_out_of_resources() const {
  return code_ == EMFILE || code_ == ENFILE || code_ == ENOMEM || code_ == ENOBUFS;
}

std::string unpredictable_name() {
  std::array<std::byte, 8> bytes{};
  fill_random(bytes);
  return hex(bytes);
}

std::string process_token() {
  static std::mutex mutex;
  static std::string token;
  static pid_t owner = 0;
  const std::lock_guard lock(mutex);
  if (owner != ::getpid()) {  // the first call, or a forked child
    token = unpredictable_name();
    owner = ::getpid();
  }
  return token;
}

OutputFile::OutputFile(std::string path, FileSystem& files)
    : path_(std::move(path)), files_(files) {
  file_ = uninterrupted([&] { return files_.open_new(path_); });
  if (file_ < 0) {
    fail_file(errno, path_, "create the file");
  }
}

OutputFile::~OutputFile() {
  if (file_ >= 0) {
    files_.close(file_);
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  check(file_ >= 0, path_, ": cannot write, the file is already finished");
  write_all(file_, bytes, path_, size_, files_);
  size_ += bytes.size();
  checksum_ = crc32c(bytes, checksum_);
}

void OutputFile::finish() {
  check(file_ >= 0, path_, ": cannot finish, the file is already finished");
  if (uninterrupted([&] { return files_.sync(file_); }) != 0) {
    fail_file(errno, path_, "sync the file of ", size_, " bytes");
  }
  const int closed = files_.close(std::exchange(file_, -1));
  if (closed != 0 && errno != EINTR) {  // interrupted, but closed all the same
    fail_file(errno, path_, "close the file of ", size_, " bytes");
  }
}

InputFile::InputFile(std::string path, FileSystem& files) : path_(std::move(path)), files_(&files) {
  file_ = uninterrupted([&] { return files_->open_read(path_); });
  if (file_ < 0) {
    const int code = errno;
    const bool odd = code == EINVAL || code == EISDIR || code == ENXIO;
    fail_file(code, path_, "open the file",
              odd ? text(" (it is ", file_kind(path_), ", not a regular file)") : "");
  }
  const int64_t size = files_->size(file_);
  if (size < 0) {
    const int code = errno;
    files_->close(file_);
    fail_file(code, path_, "get the size of the file");
  }
  size_ = static_cast<uint64_t>(size);
}

InputFile::~InputFile() {
  if (file_ >= 0) {
    files_->close(file_);
  }
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      files_(other.files_),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_) {}

void InputFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const int64_t count =
        uninterrupted([&] { return files_->read(file_, bytes.data(), bytes.size(), offset); });
    if (count < 0) {
      fail_file(errno, path_, "read ", bytes.size(), " bytes at byte ", offset);
    }
    check(count > 0, path_, ": the file ends at byte ", offset, ", expected ", bytes.size(),
          " more bytes (is it being written, or cut off?)");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

std::vector<std::byte> read_file(const std::string& path, uint64_t max_bytes, FileSystem& files) {
  const InputFile file(path, files);
  check(file.size() <= max_bytes, path, ": the file has ", file.size(), " bytes, expected at most ",
        max_bytes);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

void write_file_durably(const std::string& path, const std::function<void(OutputFile&)>& write,
                        FileSystem& files) {
  write_beside(path, write, files,
               [&](const std::string& temporary) { rename_path(temporary, path, files); });
}

void write_file_durably(const std::string& path, std::string_view bytes, FileSystem& files) {
  write_file_durably(
      path, [&](OutputFile& file) { file.write(bytes); }, files);
}

std::string write_new_file_durably(const std::string& path, std::string_view bytes,
                                   FileSystem& files) {
  std::string name;
  write_beside(
      path, [&](OutputFile& file) { file.write(bytes); }, files,
      [&](const std::string& temporary) { name = rename_to_free_name(temporary, path, files); });
  return name;
}

void append_to_file(const std::string& path, std::string_view bytes, FileSystem& files,
                    bool empty) {
  const int file = uninterrupted([&] { return files.open_append(path, empty); });
  if (file < 0) {
    fail_file(errno, path, "open the file for writing");
  }
  try {
    const int64_t size = files.size(file);
    write_all(file, std::as_bytes(std::span(bytes.data(), bytes.size())), path,
              static_cast<uint64_t>(std::max<int64_t>(size, 0)), files);
  } catch (...) {
    files.close(file);
    throw;
  }
  if (files.close(file) != 0 && errno != EINTR) {  // interrupted, but closed all the same
    fail_file(errno, path, "close the file");
  }
}

void rename_path(const std::string& from, const std::string& to, FileSystem& files) {
  if (uninterrupted([&] { return files.rename(from, to); }) != 0) {
    fail_file(errno, from, "rename to ", to);
  }
}

std::string rename_to_free_name(const std::string& from, const std::string& to, FileSystem& files) {
  for (int64_t number = 1;; ++number) {
    std::string name = number == 1 ? to : text(to, "-", number);
    if (uninterrupted([&] { return files.rename_new(from, name); }) == 0) {
      return name;
    }
    if (errno != EEXIST) {
      fail_file(errno, from, "rename to ", name);
    }
  }
}

void sync_directory(const std::string& path, FileSystem& files) {
  if (uninterrupted([&] { return files.sync_directory(path); }) != 0) {
    fail_file(errno, path, "sync the directory");
  }
}

void make_directories(const std::string& path, FileSystem& files) {
  const std::string parent = parent_directory(path);
  int result = uninterrupted([&] { return files.make_directory(path); });
  if (result != 0 && errno == ENOENT && parent != path) {
    make_directories(parent, files);
    result = uninterrupted([&] { return files.make_directory(path); });
  }
  if (result == 0) {
    sync_directory(parent, files);
    return;
  }
  const int code = errno;
  if (code != EEXIST) {
    fail_file(code, path, "make the directory");
  }
  list_directory(path, files);  // if it exists it must be a directory
}

bool make_new_directory(const std::string& path, FileSystem& files) {
  if (uninterrupted([&] { return files.make_directory(path); }) == 0) {
    return true;
  }
  if (errno != EEXIST) {
    fail_file(errno, path, "make the directory");
  }
  return false;
}

std::vector<DirectoryEntry> list_directory(const std::string& path, FileSystem& files) {
  std::vector<DirectoryEntry> entries;
  const int result = uninterrupted([&] {
    entries.clear();
    return files.list(path, entries);
  });
  if (result != 0) {
    fail_file(errno, path, "list the directory");
  }
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

void remove_path(const DirectoryEntry& entry, const std::string& parent, FileSystem& files) {
  const std::string path = parent + "/" + entry.name;
  const int result = uninterrupted(
      [&] { return entry.is_directory ? files.remove_directory(path) : files.remove_file(path); });
  if (result != 0) {
    fail_file(errno, path, "remove it");
  }
}

std::string parent_directory(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) {
    return path.empty() ? "." : "/";
  }
  const size_t slash = path.find_last_of('/', last);
  if (slash == std::string::npos) {
    return ".";
  }
  const size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

}  // namespace binade
