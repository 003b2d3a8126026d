// ScalerNotes: what to say about skipped steps, and when to say nothing.
//
// A dynamic loss scale begins too high on purpose, so that its first steps overflow: that is one
// calm line. Later each growth may cost one overflow. A warning comes only where more steps were
// skipped than this explains: the fall from the initial scale to 1, and one per growth interval.
#pragma once
#include <binade/optim/scaler_state.h>

#include <string>

namespace binade::optim {

struct ScalerNote {
  bool warning = false;
  std::string text;  // a line without its end; empty: nothing is to be said
};

class ScalerNotes {
 public:
  explicit ScalerNotes(const LossScalerOptions& options) : options_(options) {}
  // Looks at the counters of a run: steps so far, how many of them were skipped, the scale now. A
  // warning comes again only when twice as many were skipped.
  ScalerNote look(int64_t steps, int64_t skipped, double scale);
  // Skipped steps that need no explanation.
  int64_t expected(int64_t steps, int64_t skipped) const;

 private:
  LossScalerOptions options_;
  bool calm_said_ = false;
  int64_t warned_at_ = 0;  // skipped steps at the last warning
};

}  // namespace binade::optim
