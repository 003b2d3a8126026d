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

  // Over at most `most` batches, 0: all. `what` is "validation" or "test". With `averages` the
  // model has those of the Ema meanwhile. Collective.
  Evaluation evaluate(data::Loader& loader, const char* what, int64_t most, bool averages) const;
  // The same on a few batches of this rank, without a trace: buffers and random numbers are as
  // before. Its errors say what it is. Returns what evaluate() will give, up to the numbers.
  Evaluation try_out(data::Loader& loader, int64_t most) const;
  // Throws if there is no step to evaluate with; `what` asks for it.
  void check_step(const char* what) const;
  // As in Trainer.
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
