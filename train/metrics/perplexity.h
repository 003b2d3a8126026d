// Perplexity of a language model.
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

struct PerplexityOptions {
  std::string name = "perplexity";
  // See MetricFields.
  std::string output = {};
  std::string target = "labels";
  std::string mask = {};
  int64_t ignore_index = -100;
  int class_dim = 1;  // of the logits; -1 for [N, T, C]
  // For steps without output: StepOutput::loss is the mean cross entropy of the batch, which counts
  // by StepOutput::weight or its samples. This is the exponential of the validation loss.
  bool from_loss = false;
};

// "perplexity": the exponential of the mean cross entropy, natural logarithm, over all positions.
// Logits (or log-probabilities) and targets as for cross_entropy, and as in class_metric.h. Logits
// that seem to be probabilities are an error.
class Perplexity : public TargetMetric {
 public:
  explicit Perplexity(const PerplexityOptions& options = {});
  void update(const StepOutput& step, const data::Batch& batch) override;
  double value() const override;

 private:
  void add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) override;

  PerplexityOptions options_;
  MetricSum loss_{*this, "loss"}, weight_{*this, "weight"};
  MetricCount counts_{*this, "counts", 4};  // positions; out of range; probability_rows()
};

}  // namespace binade::train
