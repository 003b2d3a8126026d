#include <binade/core/io/json_text.h>
#include <binade/train/logging/json_lines.h>
#include <binade/train/logging/log_text_internal.h>
#include <binade/train/run_directory.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

// The step of a line; empty if it is not one of a log.
std::optional<int64_t> step_of(const std::string& line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_integer()) {
    return std::nullopt;
  }
  return parsed["step"].get<int64_t>();
}

}  // namespace

class JsonLines::File {
 public:
  File(std::string path, const LogStart& start)
      : path_(std::move(path)),
        files_(*start.files),
        last_kept_(start.resumed ? start.step : int64_t{-1}) {}

  void append(const std::string& line) {
    if (!is_whole_) {
      keep_lines(
          path_,
          [this](const std::string& old) {
            const std::optional<int64_t> step = step_of(old);
            return is_begun_ || (step && *step <= last_kept_);
          },
          files_);
      is_whole_ = is_begun_ = true;
    }
    is_whole_ = false;  // until all of it is written
    append_to_file(path_, line, files_);
    is_whole_ = true;
  }

  void sync() const {
    if (is_begun_) {
      sync_log(path_, files_);
    }
  }

 private:
  std::string path_;
  FileSystem& files_;
  int64_t last_kept_;      // step
  bool is_begun_ = false;  // lines of later steps are cut
  bool is_whole_ = false;  // the last line has its end
};

JsonLines::JsonLines(JsonLinesOptions options)
    : Logger("json_lines"), options_(std::move(options)) {
  check(!options_.file.empty(), name(), ": got no file, expected a path");
}
JsonLines::~JsonLines() = default;
JsonLines::JsonLines(JsonLines&&) noexcept = default;
JsonLines& JsonLines::operator=(JsonLines&&) noexcept = default;

void JsonLines::open(const LogStart& start) {
  file_ = std::make_unique<File>(log_path(start, options_.file), start);
}

void JsonLines::write(const ScalarRecord& record) {
  std::string line = binade::text("{\"epoch\":", record.epoch, ",\"step\":", record.step);
  for (const auto& [name, value] : record.values) {
    line += "," + json_quoted(name) + ":" + (std::isfinite(value) ? shortest(value) : "null");
  }
  for (const auto& [name, word] : record.words) {
    line += "," + json_quoted(name) + ":" + json_quoted(word);
  }
  file_->append(line + "}\n");
}

void JsonLines::write_text(int64_t step, const std::string& tag, const std::string& text) {
  file_->append(binade::text("{\"step\":", step, ",", json_quoted(tag), ":", json_quoted(text)) +
                "}\n");
}

void JsonLines::close() { file_->sync(); }

}  // namespace binade::train
