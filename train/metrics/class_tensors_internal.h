// ClassTensors: an output and a target of a classification in one form. Internal to train.
#pragma once
#include <binade/train/metrics/class_metric.h>

namespace binade::train {

// [P...] are the sizes of the positions: [N, ...] without the classes.
struct ClassTensors {
  int64_t classes = 0;        // 0: not known
  bool is_binary = false;     // one score per position
  Tensor scores = {};         // [N, C, ...]; undefined if is_binary or if the output has classes
  Tensor predicted = {};      // i64 [P...]
  Tensor target = {};         // i64 [P...]
  Tensor counted = {};        // bool [P...]: false if ignored, masked, NaN or out of range
  Tensor nan = {}, bad = {};  // bool [P...]: would count, but has NaN, or a class out of range
};

// Throws an Error that begins with `metric` if the tensors do not fit, on the CPU also if a class
// is out of range. All are on one device; `mask` may be undefined.
ClassTensors class_tensors(const std::string& metric, const ClassMetricOptions& options,
                           const Tensor& output, const Tensor& target, const Tensor& mask);

// The text of the error for `number` classes that are out of range.
std::string out_of_range(const std::string& metric, int64_t number);

// i64 [1]: how many elements are true.
Tensor number_of(const Tensor& which);

// The scores with the classes in dimension 1. Throws unless they are [N, C, ...], C >= 2.
Tensor scores_by_class(const std::string& metric, const Tensor& output, int class_dim,
                       const char* for_one_score);

// The target as [P...] for scores [N, C, ...]; so is a mask.
Tensor fit_positions(const std::string& metric, const char* what, const Tensor& x,
                     const Tensor& scores);

}  // namespace binade::train
