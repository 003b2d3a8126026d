#include <binade/train/metrics.h>
#include <binade/train/run_directory.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

constexpr const char* kBeforeWords = "precision";  // where values of a test go

// Whole numbers are written as such: 3, not 3.0.
nlohmann::ordered_json json_number(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  const bool whole = std::abs(value) < kExact && value == std::trunc(value);
  return whole ? nlohmann::ordered_json(static_cast<int64_t>(value))
               : nlohmann::ordered_json(value);
}

}  // namespace

std::string to_json(const ScalarRecord& record) {
  nlohmann::ordered_json line;
  line["epoch"] = record.epoch;
  line["step"] = record.step;
  for (const auto& [name, value] : record.values) {
    line[name] = json_number(value);
  }
  for (const auto& [name, word] : record.words) {
    line[name] = word;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

MetricsFile::MetricsFile(std::string path, int64_t epoch, int64_t steps, FileSystem& files)
    : path_(std::move(path)), files_(&files), epoch_(epoch), steps_(steps) {
  for (std::string& line : read_lines(path_, files)) {
    if (is_before(line) && line.ends_with('\n')) {
      line.pop_back();
      lines_.push_back(std::move(line));
    }
  }
}

bool MetricsFile::is_before(const std::string& line) const {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  const auto has = [&](const char* name) {
    return parsed.is_object() && parsed.contains(name) && parsed[name].is_number_integer();
  };
  return has("epoch") && (has("step") ? parsed["step"].get<int64_t>() <= steps_
                                      : parsed["epoch"].get<int64_t>() < epoch_);
}

void MetricsFile::add(const ScalarRecord& record) {
  lines_.push_back(to_json(record));
  write();
}

void MetricsFile::append(const ScalarRecord& record) {
  lines_.push_back(to_json(record));
  if (!path_.empty()) {
    cut();
    append_to_file(path_, lines_.back() + "\n", *files_);
  }
}

void MetricsFile::set_in_last(const NamedValues& values) {
  if (lines_.empty()) {
    return;
  }
  const auto before = nlohmann::ordered_json::parse(lines_.back());
  nlohmann::ordered_json line;
  const auto put = [&] {
    for (const auto& [name, value] : values) {
      line[name] = json_number(value);
    }
  };
  for (const auto& [name, value] : before.items()) {
    if (name == kBeforeWords) {
      put();
    }
    if (!line.contains(name)) {
      line[name] = value;
    }
  }
  put();
  lines_.back() = line.dump();
  write();
}

void MetricsFile::cut() {
  if (!is_cut_) {
    keep_lines(
        path_, [this](const std::string& line) { return is_before(line); }, *files_);
    is_cut_ = true;
  }
}

void MetricsFile::write() {
  if (path_.empty()) {
    return;
  }
  cut();
  std::string all;
  for (const std::string& line : lines_) {
    all += line + "\n";
  }
  write_file_durably(path_, all, *files_);
}

}  // namespace binade::train
