// RunDisplay prints a line per epoch, a live line on a terminal, and notes. Internal to train.
#pragma once
#include <binade/data/loader.h>
#include <binade/train/metrics.h>

#include <string>

namespace binade::train {

// The progress of the current epoch.
struct RunProgress {
  int64_t epoch, batch;
  double loss;  // mean of the epoch so far
  double lr, scale;
  std::string skipped;
  double seconds;  // since the line began
  int64_t samples;
};

class RunDisplay {
 public:
  RunDisplay(bool on, int64_t epochs) : on_(on), epochs_(epochs) {}

  bool is_live() const;  // there is a terminal
  void progress(const data::Loader& loader, const RunProgress& now) const;
  void epoch(const EpochMetrics& metrics, const std::string& skipped) const;
  void note(const std::string& text) const;

 private:
  bool on_;
  int64_t epochs_;
};

}  // namespace binade::train
