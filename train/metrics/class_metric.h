// Metrics of classification. An output is one of these:
//
//   scores [N, C, ...], f32 or another floating dtype: logits or probabilities, one per class
//   one score per position, with the option `threshold`: two classes, or several labels at once
//   classes [N, ...], i64, i32 or u8
//
// A target has the classes [N, ...] as integers, or probabilities of the sizes of the scores, of
// which the largest is the class (they sum to 1, so 0 and 1 for several labels at once are an
// error); with `threshold` 0 and 1 in any dtype. For scores [M, C] a target of any sizes with M
// elements will do: [N, T] beside [N T, C].
//
// A position whose score or target is NaN makes the value NaN. A class out of range is an error: on
// the CPU of update(), on a device, which does not wait, of value().
#pragma once
#include <binade/train/metrics/target_metric.h>

#include <optional>

namespace binade::train {

struct ClassMetricOptions {
  std::string name = {};  // of the value; empty: the metric's own
  // See MetricFields.
  std::string output = {};
  std::string target = "labels";
  std::string mask = {};
  int64_t ignore_index = -100;  // targets that do not count, as in cross_entropy
  int class_dim = 1;            // of scores; -1 for [N, T, C]
  // With it an output is one score per position, which is positive above this: 0 for logits, 0.5
  // for probabilities.
  std::optional<double> threshold = std::nullopt;
  int64_t classes = 0;  // needed for outputs that are classes; 0: as many as there are scores
};

struct ClassTensors;

class ClassMetric : public TargetMetric {
 protected:
  ClassMetric(const char* default_name, const ClassMetricOptions& options);
  const ClassMetricOptions& options() const { return options_; }
  virtual void add_classes(const ClassTensors& tensors) = 0;
  // True if there was a NaN. Throws if a class was out of range. Waits for a device.
  bool has_nan() const;

 private:
  void add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) final;

  ClassMetricOptions options_;
  MetricCount bad_{*this, "bad", 2};  // positions with NaN, and with a class out of range
};

}  // namespace binade::train
