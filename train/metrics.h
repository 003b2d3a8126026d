// Metrics of a run: RUN/metrics.jsonl, one JSON object per epoch, doubles in shortest round-trip
// form.
#pragma once
#include <binade/core/io/file_system.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace binade::train {

struct EpochMetrics {
  int64_t epoch = 0;
  double train_loss = 0;
  std::optional<double> validation_loss, validation_accuracy;
  std::optional<double> test_accuracy;  // of the last epoch, after the best weights came back
  double samples_per_second = 0;
  double learning_rate = 0;  // of the last step
  double loss_scale = 1;
  int64_t skipped_steps = 0;  // since the start
  std::string precision;
  std::string mode;  // of the arithmetic, fast or precise (kernels/base/math_mode.h)
  int workers = 0;
  std::string augment;
  int64_t decode_errors = 0;
  std::string state_hash;  // parameters, buffers, masters and moments at the end of the epoch
};

std::string to_json(const EpochMetrics& metrics);

// The file. Every change replaces it durably, so a reader or a crash never sees half a line.
class MetricsFile {
 public:
  MetricsFile() = default;  // keeps nothing
  // Lines of epochs from `first_epoch` on, which a resumed run writes again, go to another file
  // (keep_lines in train/run_directory.h) before the first change, not now. REQUIRES: `files`
  // outlives it.
  MetricsFile(std::string path, int64_t first_epoch, FileSystem& files = file_system());
  void add(const EpochMetrics& metrics);
  // Writes the test accuracy into the last line, also if an earlier process wrote that line.
  void set_test_accuracy(double accuracy);

 private:
  bool is_before(const std::string& line) const;
  void write();

  std::string path_;
  FileSystem* files_ = nullptr;
  int64_t first_epoch_ = 0;
  bool is_cut_ = false;
  std::vector<std::string> lines_;
};

}  // namespace binade::train
