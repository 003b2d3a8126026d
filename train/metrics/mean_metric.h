// MeanMetric: the mean of numbers that a function computes from each batch.
//
//   train::MeanMetric bias("bias", [](const train::StepOutput& step, const data::Batch& batch) {
//     return step.output - batch["y"];
//   });
#pragma once
#include <binade/train/metrics/metric.h>

#include <functional>

namespace binade::train {

class MeanMetric : public Metric {
 public:
  // The function returns a tensor of any sizes, whose elements count alike.
  using Function = std::function<Tensor(const StepOutput& step, const data::Batch& batch)>;

  MeanMetric(std::string name, Function function);
  void update(const StepOutput& step, const data::Batch& batch) override;
  double value() const override;

 private:
  Function function_;
  MetricSum sum_{*this, "sum"};
  MetricCount count_{*this, "count"};
};

}  // namespace binade::train
