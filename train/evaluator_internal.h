// Evaluator runs a model in evaluation mode: validation, test and prediction. Internal to train.
#pragma once
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/trainer.h>

namespace binade::train {

class Evaluator {
 public:
  // REQUIRES: the arguments outlive it.
  Evaluator(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks);

  // Evaluates at most `most` batches, 0: all. `what` is "validation" or "test". With `averages` the
  // model uses the Ema's averages during the call. Collective.
  Evaluation evaluate(data::Loader& loader, const char* what, int64_t most, bool averages) const;
  // The same on a few batches of this rank; restores buffers and random numbers. Its errors say
  // that this is a trial. The result has the names that evaluate() will give, but other numbers.
  Evaluation try_out(data::Loader& loader, int64_t most) const;
  // Throws if there is no step to evaluate with; `what` names the caller for the message.
  void check_step(const char* what) const;
  // See Trainer.
  NamedTensors predict(data::Loader& loader, bool averages) const;
  std::vector<int64_t> predict(const Tensor& images, bool averages) const;

 private:
  class Pass;

  const RunParts& parts_;
  const Ranks& ranks_;
  TrainingStep step_;        // of validation; empty if there is none
  TrainingStep prediction_;  // empty: step_
  bool classifies_;          // the default step
  std::vector<MetricPtr> metrics_;
};

}  // namespace binade::train
