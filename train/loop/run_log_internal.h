// RunLog writes the lines of a run to metrics.jsonl and to the loggers, and keeps the newest value
// of each key. Internal to train.
#pragma once
#include <binade/train/loop/options.h>
#include <binade/train/metrics.h>
#include <binade/train/ranks_internal.h>

namespace binade::train {

class RunDirectory;

class RunLog {
 public:
  // REQUIRES: the arguments outlive it. `directory` is null without one and on other ranks.
  RunLog(const TrainerOptions& options, const Ranks& ranks, const RunDirectory* directory);

  // Says that the lines after `steps` come again. The files change only with the first line.
  void open(int64_t epoch, int64_t steps, bool resumed);
  void start_loggers();                        // at the beginning of fit()
  void line(const ScalarRecord& record);       // of a validation or the end of an epoch
  void step_line(const ScalarRecord& record);  // of a step
  // Adds the values to the last line of metrics.jsonl, and to the loggers as a record.
  void add_to_last(const NamedValues& values);
  void finish();  // at the end of fit()
  const NamedValues& values() const { return values_; }

 private:
  void to_loggers(const ScalarRecord& record);

  const TrainerOptions& options_;
  const Ranks& ranks_;
  const RunDirectory* directory_;
  MetricsFile file_;
  LogStart start_;
  ScalarRecord last_;
  bool started_ = false;
  NamedValues values_;
};

}  // namespace binade::train
