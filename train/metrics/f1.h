// F1, the harmonic mean of precision and recall: 2 tp / (2 tp + fp + fn).
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

enum class F1Average : uint8_t {
  macro,     // the mean of the classes that have samples or predictions
  micro,     // of tp, fp and fn summed over the classes
  weighted,  // the mean of the classes, weighted by their samples
  binary,    // of class 1, of two classes
};

// "f1". With a threshold, positions [N, L, ...] are L labels, each of which is a class here; for
// F1Average::binary, and for positions [N], they are two classes. NaN if nothing can be averaged.
class F1 : public ClassMetric {
 public:
  explicit F1(F1Average average = F1Average::macro, const ClassMetricOptions& options = {});
  double value() const override;
  std::vector<double> per_class() const;  // NaN for classes with neither samples nor predictions

 private:
  void add_classes(const ClassTensors& tensors) override;

  F1Average average_;
  MetricCount right_{*this, "right", 0}, predicted_{*this, "predicted", 0},
      samples_{*this, "samples", 0};  // per class
};

}  // namespace binade::train
