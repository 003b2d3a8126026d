// Metrics of a run: RUN/metrics.jsonl, one JSON object per validation, end of an epoch and, where
// TrainerOptions::log_every asks for it, step. Numbers are in their shortest form that reads back
// equal; NaN and infinities are null.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/logging/logger.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::train {

// epoch, step, the values, the words.
std::string to_json(const ScalarRecord& record);

class MetricsFile {
 public:
  MetricsFile() = default;  // keeps nothing
  // Lines of steps after `steps`, which a resumed run writes again, go to another file (keep_lines
  // in train/run_directory.h) before the first change, not now. A line without a step counts by its
  // epoch: those from `epoch` on. REQUIRES: `files` outlives it.
  MetricsFile(std::string path, int64_t epoch, int64_t steps, FileSystem& files = file_system());
  // Replaces the file durably, so a reader or a crash never sees half a line.
  void add(const ScalarRecord& record);
  // Appends; a crash may lose it or leave a part of it, which the next add() mends.
  void append(const ScalarRecord& record);
  // Sets values in the last line, also if an earlier process wrote that line.
  void set_in_last(const NamedValues& values);

 private:
  bool is_before(const std::string& line) const;
  void cut();
  void write();

  std::string path_;
  FileSystem* files_ = nullptr;
  int64_t epoch_ = 0, steps_ = 0;
  bool is_cut_ = false;
  std::vector<std::string> lines_;
};

}  // namespace binade::train
