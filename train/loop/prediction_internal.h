// Prediction: joins the outputs of batches. Internal to train.
#pragma once
#include <binade/data/loader.h>
#include <binade/train/step.h>

namespace binade::train {

class Prediction {
 public:
  // Copies output and outputs to the CPU. Throws if there are none, if the names differ from those
  // of earlier batches, if one comes twice, or if a tensor does not have one row per sample.
  void add(const StepOutput& output, const data::Batch& batch);
  // The rows of all batches by name, in the order of the data set, and "indices", i64 [N].
  NamedTensors join() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<Tensor>> parts_;  // [name][batch]
  std::vector<int64_t> indices_;
};

}  // namespace binade::train
