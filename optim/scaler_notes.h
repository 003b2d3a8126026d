// ScalerNotes: the messages about skipped steps.
//
// A dynamic loss scale begins too high on purpose, so its first steps overflow: that gives one line
// of information. Later each growth may cost one overflow. There is a warning only if more steps
// were skipped than expected: those from the initial scale down to 1, and one per growth interval.
#pragma once
#include <binade/optim/scaler_state.h>

#include <string>

namespace binade::optim {

struct ScalerNote {
  bool warning = false;
  std::string text;  // a line without its end; empty: no message
};

class ScalerNotes {
 public:
  explicit ScalerNotes(const LossScalerOptions& options) : options_(options) {}
  // Takes the counters of a run: the steps so far, the number of them that were skipped, and the
  // current scale. A warning is repeated only when twice as many steps were skipped.
  ScalerNote look(int64_t steps, int64_t skipped, double scale);
  // The number of skipped steps that is expected.
  int64_t expected(int64_t steps, int64_t skipped) const;

 private:
  LossScalerOptions options_;
  bool calm_said_ = false;
  int64_t warned_at_ = 0;  // skipped steps at the last warning
};

}  // namespace binade::optim
