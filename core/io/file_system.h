// Files. FileSystem is an interface of thin calls that report failures through errno like the
// system calls they wrap, so that tests can put a crash model or injected faults behind everything
// that writes. On top of it: checked handles (OutputFile, InputFile) and durable replacement of
// whole files. All errors are FileError, one line with the path, the byte position and the system's
// reason.
#pragma once
#include <binade/kernels/base/error.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

// A failed file operation. code() is the errno value.
class FileError : public Error {
 public:
  FileError(const std::string& text, int code) : Error(text), code_(code) {}
  int code() const { return code_; }
  // True if the process or the machine lacks descriptors or memory: the file may be good.
  bool is_out_of_resources() const;

 private:
  int code_;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;  // false for links, whatever they point to
  bool is_file = false;       // a regular file, not a link
};

// What the system says about a directory. It changes whenever an entry is added, removed or
// renamed, but a change so soon after the one before that both have the same time may leave it as
// it is.
struct DirectoryStamp {
  uint64_t node = 0;                  // the number of the inode
  uint64_t bytes = 0, links = 0;      // its size, and how many names it has
  int64_t modified = 0, changed = 0;  // nanoseconds: the last change of entries; of anything

  bool operator==(const DirectoryStamp&) const = default;
};

// Calls return -1 and set errno on failure. May be used from several threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates a file for writing; fails with EEXIST if anything (even a link) has that name.
  virtual int open_new(const std::string& path) = 0;
  // Opens a file for writing at its end, or creates it. `empty`: its bytes are dropped first.
  virtual int open_append(const std::string& path, bool empty) = 0;
  virtual int open_read(const std::string& path) = 0;                   // regular files only
  virtual int64_t write(int file, const void* data, size_t bytes) = 0;  // appends; may be short
  virtual int64_t read(int file, void* data, size_t bytes, uint64_t offset) = 0;  // may be short
  virtual int64_t size(int file) = 0;
  virtual int sync(int file) = 0;
  virtual int close(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;  // replaces files
  // Fails with EEXIST if anything has the new name. Of several processes exactly one succeeds.
  virtual int rename_new(const std::string& from, const std::string& to) = 0;
  virtual int remove_file(const std::string& path) = 0;
  virtual int remove_directory(const std::string& path) = 0;  // empty ones only
  virtual int make_directory(const std::string& path) = 0;
  virtual int sync_directory(const std::string& path) = 0;
  virtual int list(const std::string& path, std::vector<DirectoryEntry>& entries) = 0;
  // Follows links. Returns 1, or 0 if the kind of file system is not known to set both times at
  // every change of an entry.
  virtual int stamp(const std::string& path, DirectoryStamp& stamp) = 0;
  virtual int64_t free_bytes(const std::string& path) = 0;  // what this user may still write
  // Nanoseconds: the time of the last change of a file, by the clock of its file system.
  virtual int64_t modified(const std::string& path) = 0;
  virtual int touch(const std::string& path) = 0;  // sets that time to now
  // 1 if both names refer to the same file (links are not followed), else 0.
  virtual int is_same_file(const std::string& a, const std::string& b) = 0;
};

FileSystem& file_system();  // the machine's
// The same, but it follows no link below `root`: there a link in the middle of a path, or a file
// to read that is a link, is an error (ELOOP). `root` itself and its parents may be links; they are
// followed once, now, so a later change of the working directory does not matter. Other paths work
// as usual. REQUIRES: `root` is a directory, and paths below it begin with it.
std::unique_ptr<FileSystem> file_system_below(const std::string& root);

// 16 hexadecimal digits that nobody can guess.
std::string unpredictable_name();
// The same, fixed for the life of this process; a forked child has its own token. The temporary
// files of write_file_durably() contain it in their names: PATH.TOKEN-N.tmp.
std::string process_token();

// "a regular file", "a directory", "a FIFO", "a socket", "a device", "a link to nothing" or why it
// cannot be told. Follows links and never waits.
std::string file_kind(const std::string& path);

// A file being written. finish() syncs the bytes to disk; the destructor closes an unfinished file.
class OutputFile {
 public:
  explicit OutputFile(std::string path, FileSystem& files = file_system());
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Syncs and closes. An error here is final: written bytes may be lost.
  void finish();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  uint32_t checksum() const { return checksum_; }  // CRC-32C of all bytes so far

 private:
  std::string path_;
  FileSystem& files_;
  int file_ = -1;
  uint64_t size_ = 0;
  uint32_t checksum_ = 0;
};

// A file being read, at any position.
class InputFile {
 public:
  explicit InputFile(std::string path, FileSystem& files = file_system());
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  // Fills `bytes` from `offset`; throws if the file ends before.
  void read(uint64_t offset, std::span<std::byte> bytes) const;
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when opened

 private:
  std::string path_;
  FileSystem* files_;
  int file_ = -1;
  uint64_t size_ = 0;
};

// The whole file; an error if it is longer than `max_bytes`.
std::vector<std::byte> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32,
                                 FileSystem& files = file_system());

// Replaces (or creates) the file. After a crash at any moment the path holds all of the old bytes
// or all of the new ones, and after this has returned the new ones: it writes a temporary file
// beside it, syncs, renames, and syncs the directory. On an error the old file is untouched.
void write_file_durably(const std::string& path, const std::function<void(OutputFile&)>& write,
                        FileSystem& files = file_system());
void write_file_durably(const std::string& path, std::string_view bytes,
                        FileSystem& files = file_system());

// Writes a new file as durably, under the first of PATH, PATH-2, PATH-3, ... that nothing has as
// its name, and returns that name.
std::string write_new_file_durably(const std::string& path, std::string_view bytes,
                                   FileSystem& files = file_system());

// Writes at the end of the file, or creates it; `empty`: its bytes are dropped first. Does not
// sync: a crash may leave only a part of these bytes.
void append_to_file(const std::string& path, std::string_view bytes,
                    FileSystem& files = file_system(), bool empty = false);

// Checked forms of the calls. `make_directories` makes missing parents too, durably.
void rename_path(const std::string& from, const std::string& to, FileSystem& files = file_system());
// Renames FROM to the first of TO, TO-2, TO-3, ... that nothing has as its name, and returns it.
std::string rename_to_free_name(const std::string& from, const std::string& to,
                                FileSystem& files = file_system());
void sync_directory(const std::string& path, FileSystem& files = file_system());
void make_directories(const std::string& path, FileSystem& files = file_system());
// Makes one directory; false if something has its name already.
bool make_new_directory(const std::string& path, FileSystem& files = file_system());
std::vector<DirectoryEntry> list_directory(const std::string& path,
                                           FileSystem& files = file_system());  // sorted by name
void remove_path(const DirectoryEntry& entry, const std::string& parent,
                 FileSystem& files = file_system());  // a file, a link or an empty directory
std::string parent_directory(const std::string& path);

}  // namespace binade
