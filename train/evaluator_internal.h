// Evaluator runs a model in evaluation mode: validation and prediction. Internal to train.
#pragma once
#include <binade/train/ranks_internal.h>
#include <binade/train/trainer.h>

namespace binade::train {

class Evaluator {
 public:
  // REQUIRES: the arguments outlive it. A null `step` means classification_step.
  Evaluator(nn::Module& model, const TrainingStep& step, const Ranks& ranks)
      : model_(model), step_(step), ranks_(ranks) {}

  // As in Trainer. Collective.
  Evaluation validate(data::Loader& loader) const;
  std::vector<int64_t> predict(const Tensor& images) const;

 private:
  nn::Module& model_;
  const TrainingStep& step_;
  const Ranks& ranks_;
};

}  // namespace binade::train
