#include <binade/core/io/file_system.h>
#include <binade/train/metrics.h>

#include <filesystem>
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

MetricsFile::MetricsFile(std::string path, int64_t first_epoch) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) {
    return;
  }
  const std::vector<std::byte> bytes = read_file(path_);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string line(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    if (parsed.is_object() && parsed.contains("epoch") && parsed["epoch"].is_number_integer() &&
        parsed["epoch"].get<int64_t>() < first_epoch) {
      lines_.push_back(line);
    }
  }
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

void MetricsFile::write() const {
  if (path_.empty()) {
    return;
  }
  std::string all;
  for (const std::string& line : lines_) {
    all += line + "\n";
  }
  write_file_durably(path_, all);
}

}  // namespace binade::train
