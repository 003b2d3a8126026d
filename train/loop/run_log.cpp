#include <binade/train/loop/named_values_internal.h>
#include <binade/train/loop/run_log_internal.h>
#include <binade/train/run_directory.h>

namespace binade::train {

RunLog::RunLog(const TrainerOptions& options, const Ranks& ranks, const RunDirectory* directory)
    : options_(options), ranks_(ranks), directory_(directory) {
  for (const LoggerPtr& logger : options_.loggers) {
    check(static_cast<bool>(logger), "trainer: got an empty LoggerPtr in TrainerOptions::loggers");
  }
}

void RunLog::open(int64_t epoch, int64_t steps, bool resumed) {
  if (directory_) {
    file_ = MetricsFile(options_.run + "/metrics.jsonl", epoch, steps, directory_->files());
  }
  start_ = {.directory = options_.run,
            .files = directory_ ? &directory_->files() : nullptr,
            .resumed = resumed,
            .step = steps,
            .rank = ranks_.rank()};
  if (started_) {
    start_loggers();
  }
}

void RunLog::start_loggers() {
  for (const LoggerPtr& logger : options_.loggers) {
    logger->start(start_);
  }
  started_ = true;
}

void RunLog::to_loggers(const ScalarRecord& record) {
  for (const auto& [name, value] : record.values) {
    set_value(values_, name, value);
  }
  for (const LoggerPtr& logger : options_.loggers) {
    if (started_) {
      logger->scalars(record);
    }
  }
  last_ = record;
}

void RunLog::line(const ScalarRecord& record) {
  file_.add(record);
  to_loggers(record);
}

void RunLog::step_line(const ScalarRecord& record) {
  file_.append(record);
  to_loggers(record);
}

void RunLog::add_to_last(const NamedValues& values) {
  file_.set_in_last(values);
  const bool started = started_;
  if (!started && !options_.loggers.empty()) {  // after the end of fit()
    LogStart again = start_;
    again.resumed = true;
    again.step = last_.step;
    for (const LoggerPtr& logger : options_.loggers) {
      logger->start(again);
    }
    started_ = true;
  }
  to_loggers({.step = last_.step, .epoch = last_.epoch, .values = values, .words = {}});
  if (!started) {
    finish();
  }
}

void RunLog::finish() {
  if (started_) {
    for (const LoggerPtr& logger : options_.loggers) {
      logger->finish();
    }
  }
  started_ = false;
}

}  // namespace binade::train
