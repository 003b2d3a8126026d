#include <binade/core/io/hash64.h>
#include <binade/data/text_lines.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace binade::data {
namespace {

constexpr size_t kMaxLine = size_t(64) << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

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

  std::mutex mutex;
  std::vector<Run> runs;  // by row
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
    file_.reset(std::fopen(path().c_str(), "rb"));
    check(file_ != nullptr, "text lines: cannot open ", path(), ": ", std::strerror(errno));
    line_ = 0;
    in_run_ = false;
    return true;
  }

  // Reads a line without its end; false if the file has no more.
  bool read_line(std::string& line) {
    line.clear();
    for (;;) {
      if (begin_ == end_) {
        begin_ = 0;
        end_ = std::fread(block_, 1, sizeof block_, file_.get());
        check(!std::ferror(file_.get()), "text lines: cannot read ", path(), ": ",
              std::strerror(errno));
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

  static void strip(std::string& line) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
  }

  const TextLines& lines_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  size_t index_ = 0;  // index of the file
  int64_t row_ = 0, line_ = 0;
  Hash64 hash_;
  bool in_run_ = false;
  char block_[1 << 16];
  size_t begin_ = 0, end_ = 0;  // unread bytes of it
};

TextLines::TextLines(std::vector<std::string> paths, Decode decode, TextLinesOptions options)
    : paths_(std::move(paths)),
      decode_(std::move(decode)),
      options_(options),
      known_(std::make_unique<Known>()) {
  check(decode_ != nullptr, "text lines: got no function that decodes a line");
  check(options.header_lines >= 0 && options.channels >= 0, "text lines: got ",
        options.header_lines, " header lines and ", options.channels,
        " channels, expected 0 or more");
}

TextLines::~TextLines() = default;

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
