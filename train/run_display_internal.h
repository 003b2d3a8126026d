// RunDisplay: prints one line for each line of metrics, a live line on a terminal, and notes.
// Internal to train.
#pragma once
#include <binade/data/loader.h>
#include <binade/train/metrics.h>

#include <string>

namespace binade::train {

// The progress of the current epoch.
struct RunProgress {
  std::string where, step;  // "epoch 2/10", "step 120/500"
  double share;             // of the epoch
  double loss;              // mean of the epoch so far
  double lr, scale;
  std::string skipped;
  double samples_per_second;
  double seconds_left;  // of the run; infinite: not known
};

class RunDisplay {
 public:
  explicit RunDisplay(bool on) : on_(on) {}

  bool is_live() const;  // there is a terminal
  // Rewrites the live line on a terminal; elsewhere prints a new line.
  void progress(const data::Loader& loader, const RunProgress& now) const;
  // `where`: "epoch 2/10".
  void line(const ScalarRecord& record, const std::string& where, const std::string& skipped) const;
  void note(const std::string& text) const;

 private:
  bool on_;
};

// "1:02:03", "2:03"; "?" for infinity.
std::string time_words(double seconds);

}  // namespace binade::train
