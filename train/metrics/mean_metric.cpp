#include <binade/train/metrics/mean_metric.h>
#include <binade/train/step.h>

namespace binade::train {

MeanMetric::MeanMetric(std::string name, Function function)
    : Metric(std::move(name)), function_(std::move(function)) {
  check(function_ != nullptr, this->name(),
        ": got no function, expected one that returns a tensor");
}

void MeanMetric::update(const StepOutput& step, const data::Batch& batch) {
  const Tensor values = function_(step, batch);
  check(values.defined(), name(), ": got an undefined tensor from the function");
  sum_.add(values);
  count_.add(values.numel());
}

double MeanMetric::value() const { return sum_.value() / static_cast<double>(count_.value()); }

}  // namespace binade::train
