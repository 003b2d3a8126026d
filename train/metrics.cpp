#include <binade/train/metrics.h>
#include <binade/train/run_directory.h>

#include <nlohmann/json.hpp>

namespace binade::train {

std::string to_json(const EpochMetrics& m) {
  nlohmann::ordered_json line;
  line["epoch"] = m.epoch;
  line["train_loss"] = m.train_loss;
  auto optional = [&line](const char* name, const std::optional<double>& value) {
    if (value) {
      line[name] = *value;
    }
  };
  optional("validation_loss", m.validation_loss);
  optional("validation_accuracy", m.validation_accuracy);
  optional("test_accuracy", m.test_accuracy);
  line["samples_per_second"] = m.samples_per_second;
  line["learning_rate"] = m.learning_rate;
  line["loss_scale"] = m.loss_scale;
  line["skipped_steps"] = m.skipped_steps;
  line["precision"] = m.precision;
  line["mode"] = m.mode;
  line["workers"] = m.workers;
  line["augment"] = m.augment;
  line["decode_errors"] = m.decode_errors;
  line["state_hash"] = m.state_hash;
  return line.dump();
}

MetricsFile::MetricsFile(std::string path, int64_t first_epoch, FileSystem& files)
    : path_(std::move(path)), files_(&files), first_epoch_(first_epoch) {
  for (std::string& line : read_lines(path_, files)) {
    if (is_before(line) && line.ends_with('\n')) {
      line.pop_back();
      lines_.push_back(std::move(line));
    }
  }
}

bool MetricsFile::is_before(const std::string& line) const {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  return parsed.is_object() && parsed.contains("epoch") && parsed["epoch"].is_number_integer() &&
         parsed["epoch"].get<int64_t>() < first_epoch_;
}

void MetricsFile::add(const EpochMetrics& metrics) {
  lines_.push_back(to_json(metrics));
  write();
}

void MetricsFile::set_test_accuracy(double accuracy) {
  if (lines_.empty()) {
    return;
  }
  const auto before = nlohmann::ordered_json::parse(lines_.back());
  nlohmann::ordered_json line;
  for (const auto& [name, value] : before.items()) {
    if (name == "samples_per_second") {
      line["test_accuracy"] = accuracy;
    }
    if (name != "test_accuracy") {
      line[name] = value;
    }
  }
  lines_.back() = line.dump();
  write();
}

void MetricsFile::write() {
  if (path_.empty()) {
    return;
  }
  if (!is_cut_) {
    keep_lines(
        path_, [this](const std::string& line) { return is_before(line); }, *files_);
    is_cut_ = true;
  }
  std::string all;
  for (const std::string& line : lines_) {
    all += line + "\n";
  }
  write_file_durably(path_, all, *files_);
}

}  // namespace binade::train
