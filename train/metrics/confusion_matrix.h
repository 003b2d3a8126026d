// ConfusionMatrix: counts how often each class was predicted for each target class.
//
//   train::ConfusionMatrix confusion({"cat", "dog"});       // a copy goes to the Trainer
//   ...
//   std::cout << confusion.report();
//
//   target \ predicted  cat  dog  samples  precision  recall
//   cat                  90   10      100     0.9474  0.9000
//   dog                   5   45       50     0.8182  0.9000
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

// Its value, "balanced_accuracy", is the mean recall of the classes that have samples.
class ConfusionMatrix : public ClassMetric {
 public:
  // One name per class.
  explicit ConfusionMatrix(std::vector<std::string> names, const ClassMetricOptions& options = {});
  // Classes 0 .. classes - 1, with these numbers as names.
  explicit ConfusionMatrix(int64_t classes, const ClassMetricOptions& options = {});

  double value() const override;
  // The table above; of more than 20 classes only the last columns, and below it the pairs that are
  // confused most. It says if positions with NaN are missing in it.
  std::string report() const override;

  int64_t classes() const { return static_cast<int64_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  // Positions of class `target` that were taken for `predicted`.
  int64_t count(int64_t target, int64_t predicted) const;
  std::vector<int64_t> counts() const;  // all, [classes, classes] row by row: row = target
  double accuracy() const;
  // For one class: right / predicted, right / samples, and the harmonic mean of both. NaN if the
  // divisor is 0, or if there was a NaN.
  double precision(int64_t c) const;
  double recall(int64_t c) const;
  double f1(int64_t c) const;

 private:
  void add_classes(const ClassTensors& tensors) override;
  void check_class(const char* function, int64_t c) const;
  struct Sums;
  Sums sums() const;

  std::vector<std::string> names_;
  MetricCount counts_;
};

}  // namespace binade::train
