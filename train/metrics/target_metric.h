// Metrics that compare an output of the step with a field of the batch, position by position.
#pragma once
#include <binade/train/metrics/metric.h>

namespace binade::train {

// The fields in which such a metric finds its tensors.
struct MetricFields {
  std::string output = {};        // one of StepOutput::outputs; empty: StepOutput::output
  std::string target = "labels";  // a field of the batch
  // A field of the batch: bool, with the target's sizes or the first of them, [N] for [N, T];
  // positions where it is false do not count, such as the padding that data::pad adds. Empty: all
  // count.
  std::string mask = {};
};

class TargetMetric : public Metric {
 public:
  // Samples that another shard has, too (Batch::repeated), are left out.
  void update(const StepOutput& step, const data::Batch& batch) override;
  // The same from tensors, for loops of your own. They may be on any device; target and mask follow
  // the output to its device.
  void add(const Tensor& output, const Tensor& target, const Tensor& mask = {});

 protected:
  TargetMetric(std::string name, MetricFields fields);
  // `mask` may be undefined. All are on the output's device. Throws before it adds anything.
  virtual void add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) = 0;

 private:
  MetricFields fields_;
};

}  // namespace binade::train
