#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/text_lines.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>

namespace binade::data {
namespace {

constexpr size_t kMaxLine = size_t(64) << 20;

constexpr uint64_t kReadBlock = uint64_t(1) << 16;

}  // namespace

// The facts known about the files. Every epoch reads the same rows, so they are kept.
struct TextLines::Known {
  // The start of a run of rows without empty lines in between.
  struct Run {
    int64_t row, line;  // line counts from 1
    size_t file;
  };

  void note(const Run& run) {
    const std::lock_guard lock(mutex);
    if (runs.empty() || run.row > runs.back().row) {
      runs.push_back(run);
    }
  }

  // The manifest's entry for a file; the manifest is read once.
  std::optional<Checksum> expected(const std::string& path, Checksums mode) {
    const std::lock_guard lock(mutex);
    const auto known = sums.find(path);
    return known != sums.end() ? known->second
                               : sums.emplace(path, expected_checksum(path, mode)).first->second;
  }

  std::mutex mutex;
  std::map<std::string, std::optional<Checksum>> sums;  // of the files opened so far
  std::vector<Run> runs;                                // by row
  int64_t size = -1;
  uint64_t hash = 0;  // of all rows
};

class TextLines::Reader final : public RowReader {
 public:
  explicit Reader(const TextLines& lines) : lines_(lines) {}

  bool next(std::string& bytes) override {
    while (file_ || open_next()) {
      if (!read_line(bytes)) {
        file_.reset();
        ++index_;
        continue;
      }
      ++line_;
      if (line_ <= lines_.options_.header_lines || bytes.empty()) {
        in_run_ = false;
        continue;
      }
      if (!in_run_) {
        lines_.known_->note({row_, line_, index_});
        in_run_ = true;
      }
      ++row_;
      hash_.add(bytes);
      return true;
    }
    const std::lock_guard lock(lines_.known_->mutex);
    lines_.known_->size = row_;
    lines_.known_->hash = hash_.value();
    return false;
  }

 private:
  const std::string& path() const { return lines_.paths_[index_]; }

  bool open_next() {
    if (index_ == lines_.paths_.size()) {
      return false;
    }
    expected_ = lines_.known_->expected(path(), lines_.options_.checksums);
    try {
      file_ = std::make_unique<InputFile>(path());
    } catch (FileError& error) {
      error.add_context("(a file of text lines)");
      throw;
    }
    found_ = {.size = file_->size()};
    if (expected_ && expected_->size != found_.size) {
      verify_checksum(path(), *expected_, found_);
    }
    at_ = begin_ = end_ = 0;
    line_ = 0;
    in_run_ = false;
    return true;
  }

  // Reads a line without its end; false if the file has no more.
  bool read_line(std::string& line) {
    line.clear();
    for (;;) {
      if (begin_ == end_) {
        read_block();
        if (end_ == 0) {
          strip(line);
          return !line.empty();
        }
      }
      const char* from = block_ + begin_;
      const void* newline = std::memchr(from, '\n', end_ - begin_);
      const size_t count =
          newline ? static_cast<size_t>(static_cast<const char*>(newline) - from) : end_ - begin_;
      line.append(from, count);
      begin_ += count + (newline ? 1 : 0);
      check(line.size() <= kMaxLine, "text lines: line ", line_ + 1, " of ", path(),
            " has more than ", kMaxLine, " bytes; is it a text file?");
      if (newline) {
        strip(line);
        return true;
      }
    }
  }

  // Reads the next block of the file; end_ is 0 at its end.
  void read_block() {
    begin_ = 0;
    end_ = std::min(kReadBlock, found_.size - at_);
    const auto bytes = std::as_writable_bytes(std::span(block_, end_));
    file_->read(at_, bytes);
    at_ += end_;
    if (expected_ && end_ > 0) {
      found_.crc = crc32c(bytes, found_.crc);
      if (at_ == found_.size) {
        verify_checksum(path(), *expected_, found_);
      }
    }
  }

  static void strip(std::string& line) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
  }

  const TextLines& lines_;
  std::unique_ptr<InputFile> file_;
  std::optional<Checksum> expected_;
  Checksum found_;    // size of the file, checksum of the bytes read so far
  uint64_t at_ = 0;   // bytes read so far
  size_t index_ = 0;  // index of the file
  int64_t row_ = 0, line_ = 0;
  Hash64 hash_;
  bool in_run_ = false;
  char block_[kReadBlock];
  size_t begin_ = 0, end_ = 0;  // unread bytes of it
};

TextLines::TextLines(std::vector<std::string> paths, Decode decode, TextLinesOptions options)
    : paths_(std::move(paths)),
      decode_(std::move(decode)),
      options_(options),
      known_(std::make_unique<Known>()) {
  check(decode_ != nullptr, "text lines: got no function that decodes a line");
  check(options.header_lines >= 0 && options.channels >= kUnknownChannels, "text lines: got ",
        options.header_lines, " header lines and ", options.channels,
        " channels, expected 0 or more");
}

TextLines::~TextLines() = default;
TextLines::TextLines(TextLines&&) noexcept = default;

std::unique_ptr<RowReader> TextLines::open(int64_t) const {
  return std::make_unique<Reader>(*this);
}

Sample TextLines::decode(const std::string& bytes, int64_t) const { return decode_(bytes); }

int64_t TextLines::size() const {
  const std::lock_guard lock(known_->mutex);
  return known_->size;
}

int64_t TextLines::count_rows() const {
  Reader reader(*this);
  std::string line;
  while (reader.next(line)) {
  }
  return size();
}

DataIdentity TextLines::identity() const {
  const std::lock_guard lock(known_->mutex);
  return {.samples = known_->size, .ids = known_->hash};
}

std::string TextLines::describe(int64_t index) const {
  const std::lock_guard lock(known_->mutex);
  const std::vector<Known::Run>& runs = known_->runs;
  auto after = std::upper_bound(runs.begin(), runs.end(), index,
                                [](int64_t row, const Known::Run& run) { return row < run.row; });
  if (after == runs.begin()) {
    return text("row ", index);
  }
  const Known::Run& run = *--after;
  return text(paths_[run.file], ":", run.line + index - run.row);
}

Sample csv_sample(std::string_view line) {
  Sample sample;
  const char *at = line.data(), *end = at + line.size();
  for (int64_t column = 0;; ++column) {
    const char* comma = std::find(at, end, ',');
    float value = 0;
    const auto [stop, error] =
        column == 0 ? std::from_chars(at, comma, sample.label) : std::from_chars(at, comma, value);
    check(error == std::errc() && stop == comma && sample.label >= 0, "csv: got '",
          std::string_view(at, static_cast<size_t>(std::min<std::ptrdiff_t>(comma - at, 40))),
          "' in column ", column + 1, ", expected ",
          column == 0 ? "a class, an integer of 0 or more" : "a number");
    if (column > 0) {
      sample.values.push_back(value);
    }
    if (comma == end) {
      break;
    }
    at = comma + 1;
  }
  check(!sample.values.empty(), "csv: got a class without values");
  return sample;
}

}  // namespace binade::data
