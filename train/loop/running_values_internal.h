// RunningValues: means over batches of named values, such as the loss and what a step logs. Sums on
// a device are read late (train/running_loss_internal.h). Internal to train.
#pragma once
#include <binade/train/metrics/named_values.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/running_loss_internal.h>
#include <binade/train/step.h>

#include <string>
#include <vector>

namespace binade::train {

// A weighted sum and its weight. With several ranks each holds a share of them.
struct RunningMean {
  std::string name;
  RunningLoss sum = RunningLoss();
  double weight = 0;

  double mean() const { return weight == 0 ? 0 : sum.total() / weight; }
};

class RunningValues {
 public:
  // REQUIRES: check_log().
  void add(const std::string& name, const LogValue& value, double weight, int64_t step);
  // The loss and the log of a step. `loss_name` is its name here.
  void add(const StepOutput& output, const std::string& loss_name, double weight, int64_t step);
  // Sums over the ranks and gives every rank an equal share. Collective; ranks may have different
  // names.
  void reduce(const Ranks& ranks);
  NamedValues means(const std::string& prefix = "") const;
  double mean(const std::string& name) const;  // 0 without such a value

  const std::vector<RunningMean>& all() const { return means_; }
  RunningMean& at(const std::string& name);  // added if it is not there
  const RunningMean* find(const std::string& name) const;
  bool empty() const { return means_.empty(); }

 private:
  std::vector<RunningMean> means_;  // sorted by name
};

// The weight of a batch: the step's own, or the number of samples.
double weight_of(const StepOutput& output, int64_t samples);
// Throws if the weight is negative or not finite, if a log value has no name, the name of the loss
// or more than one element.
void check_log(const StepOutput& output, const std::string& loss_name);

}  // namespace binade::train
