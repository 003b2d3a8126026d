// Accuracy and top-k accuracy.
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

// "accuracy": the share of positions whose class is right, 0 to 1; at a tie of scores the first
// class counts, as for argmax. With a threshold each label counts as a position.
class Accuracy : public ClassMetric {
 public:
  explicit Accuracy(const ClassMetricOptions& options = {}) : ClassMetric("accuracy", options) {}
  double value() const override;

 private:
  void add_classes(const ClassTensors& tensors) override;

  MetricCount counts_{*this, "counts", 2};  // right, all
};

// "top5": the share of positions whose class is among the k with the largest scores, 1 <= k <= C;
// at a tie of scores the first classes count. Needs scores.
class TopK : public ClassMetric {
 public:
  explicit TopK(int64_t k, const ClassMetricOptions& options = {});
  double value() const override;

 private:
  void add_classes(const ClassTensors& tensors) override;

  int64_t k_;
  MetricCount counts_{*this, "counts", 2};
};

}  // namespace binade::train
