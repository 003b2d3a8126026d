// Monitor: the value that decides early stopping, the best weights and the plateau, and which of
// two values is better. Internal to train.
#pragma once
#include <binade/train/loop/options.h>
#include <binade/train/loop/run_parts_internal.h>

#include <string>

namespace binade::train {

class Monitor {
 public:
  // Throws if the mode is not known, or differs from the plateau's.
  Monitor(const TrainerOptions& options, const RunParts& parts);

  // Call it before the first step. `known` has the keys that a validation gives, or is null if they
  // are not known; `validates`: there is validation data. Throws if the key cannot come.
  void begin(bool validates, const NamedValues* known);
  bool is_on() const { return on_; }  // after begin()
  const std::string& key() const { return key_; }
  bool is_max() const { return max_; }
  // A value that is not a number is never better.
  bool is_better(double value, double best) const;

 private:
  std::string key_;
  bool given_, max_ = false, on_ = false;
  bool validation_logs_;  // the validation logs the names that training logs
};

// Throws an error that says that the key does not exist and lists the known keys.
[[noreturn]] void refuse_monitor(const std::string& key, const NamedValues& known);

}  // namespace binade::train
