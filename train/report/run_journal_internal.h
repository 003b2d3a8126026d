// RunJournal: what a run tells about itself beside its metrics. Internal to train.
//
//   RUN/run.json         settings, environment and model, after the first step; outcome, time and
//                        steps at the end of fit(). A resumed run keeps "started"
//   RUN/timeline.jsonl   speed, waiting and memory over time: a line per kLeastSeconds, and later
//                        per thousandth of the run so far, so a week has some thousand lines
//   RUN/report.html      the report of the run (train/report/run_report.h)
//
// All of it is for people: a disk that is full or an error here is a warning, and the run goes on.
#pragma once
#include <binade/core/observe/memory_tracker.h>
#include <binade/data/loader.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace binade {
class FileSystem;
}

namespace binade::train {

struct RunFacts {
  std::map<std::string, std::string> settings;
  std::vector<std::pair<std::string, std::string>> model;  // "parameters": "1234"
  Device device;
};

// The state of a run at the moment of a line.
struct RunMoment {
  int64_t step = 0, epoch = 0;
  int64_t samples = 0;                                      // since this process began
  const data::Loader* loader = nullptr;                     // how long the training waited for it
  std::vector<std::pair<std::string, double>> values = {};  // "loss" of the last step, ...
};

class RunJournal {
 public:
  static constexpr double kLeastSeconds = 0.1;

  // Lines of steps after `step` go to timeline.jsonl.cut (keep_lines in train/run_directory.h).
  // REQUIRES: `files` outlives it.
  RunJournal(std::string directory, FileSystem& files, int64_t step);

  void begin(const RunFacts& facts);
  // One reading of a clock. True if note() is due.
  bool is_due() const { return Clock::now() >= next_; }
  // `memory` may be null: without one there are no bytes by module.
  void note(const RunMoment& moment, MemoryTracker* memory);
  // Writes what is left, run.json and the report. Without a step since the constructor nothing
  // changes.
  void end(const std::string& outcome, int64_t step, int64_t epoch);
  // Writes the report anew, with what came after the end.
  void report();

 private:
  using Clock = std::chrono::steady_clock;
  template <class F>
  void without_errors(const char* what, F write);
  void flush();
  void write_facts();
  double seconds() const;  // of the run, in all processes

  std::string directory_;
  FileSystem& files_;
  RunFacts facts_;
  std::string started_, outcome_ = "running";
  int64_t first_step_;  // after those before a resume
  int64_t step_ = 0, epoch_ = 0;
  double seconds_before_ = 0;
  Clock::time_point begun_, next_, flushed_, noted_;
  int64_t noted_samples_ = 0;
  double noted_wait_ = 0;
  std::string lines_;     // not written yet
  bool written_ = false;  // run.json, since begin()
  bool warned_ = false;
};

}  // namespace binade::train
