// AUROC, the area under the receiver operating characteristic: the probability that a positive
// sample has a larger score than a negative one, where a tie counts as half. Exact: all scores are
// kept (MetricRows) and compared by rank.
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

struct AUROCOptions {
  std::string name = "auroc";
  // See MetricFields.
  std::string output = {};
  std::string target = "labels";
  std::string mask = {};
  int64_t ignore_index = -100;
  int class_dim = 1;  // of scores; -1 for [N, T, C]
  // Scores of three and more classes are compared between samples, so logits go through a softmax
  // first. Scores that seem to be probabilities are an error without this.
  bool probabilities = false;
  bool multilabel = false;  // scores and targets (0 and 1) [N, L, ...] of L labels
};

// "auroc". One score per position, or scores of two classes: of class 1 against class 0. Of more
// classes the mean of each against the others, and of labels their mean. Classes without positive
// or without negative samples are left out; NaN if there is no other.
class AUROC : public TargetMetric {
 public:
  explicit AUROC(const AUROCOptions& options = {});
  double value() const override;
  std::vector<double> per_class() const;  // of two classes one value

 private:
  void add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) override;
  Tensor comparable(const Tensor& scores) const;
  std::vector<std::optional<double>> areas() const;  // empty for a class that is left out

  AUROCOptions options_;
  MetricRows scores_{*this, "scores"};    // [n, C], [n, L] or [n, 1]
  MetricRows targets_{*this, "targets"};  // i64 [n, 1] or [n, L]; -1: does not count
  // Targets out of range; then probability_rows(), or numbers outside 0 .. 1 and 0.
  MetricCount bad_{*this, "bad", 3};
};

}  // namespace binade::train
