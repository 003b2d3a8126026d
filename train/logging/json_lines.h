// JsonLines: one JSON object per line, {"epoch":0,"step":100,"train_loss":0.5}, with the names that
// metrics.jsonl has. Numbers are in their shortest form that reads back equal; NaN and infinities
// are null. A text is a line {"step":100,"TAG":"..."}; histograms and images are not written.
//
// Each line is appended at once. A line that a crash has cut goes to FILE.cut when the run is
// resumed.
#pragma once
#include <binade/core/owned.h>
#include <binade/train/logging/logger.h>

namespace binade::train {

struct JsonLinesOptions {
  std::string file = "log.jsonl";  // a relative path is in the run directory
};

class JsonLines : public Logger {
 public:
  explicit JsonLines(JsonLinesOptions options = {});
  ~JsonLines() override;
  JsonLines(JsonLines&&) noexcept;
  JsonLines& operator=(JsonLines&&) noexcept;

 private:
  void open(const LogStart& start) override;
  void write(const ScalarRecord& record) override;
  void write_text(int64_t step, const std::string& tag, const std::string& text) override;
  void close() override;

  class File;
  JsonLinesOptions options_;
  Owned<File> file_;
};

}  // namespace binade::train
