#include <binade/train/loop/running_values_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::train {

void check_log(const StepOutput& output, const std::string& loss_name) {
  check(std::isfinite(output.weight) && output.weight >= 0, "trainer: got a StepOutput of weight ",
        output.weight, ", expected a number >= 0");
  for (const auto& [name, value] : output.log) {
    check(!name.empty() && name != "loss" && name != loss_name,
          "trainer: the step logs a value named '", name,
          "', expected a name, and another one than that of the loss");
    check(!value.is_tensor() || value.tensor().numel() == 1, "trainer: the log value ", name,
          " has shape ", value.is_tensor() ? to_string(value.tensor().sizes()) : "",
          ", expected one element: a mean over the batch, for example");
  }
}

double weight_of(const StepOutput& output, int64_t samples) {
  return output.weight > 0 ? output.weight : static_cast<double>(samples);
}

RunningMean& RunningValues::at(const std::string& name) {
  auto place = std::lower_bound(
      means_.begin(), means_.end(), name,
      [](const RunningMean& mean, const std::string& value) { return mean.name < value; });
  if (place == means_.end() || place->name != name) {
    place = means_.insert(place, RunningMean{.name = name});
  }
  return *place;
}

const RunningMean* RunningValues::find(const std::string& name) const {
  const auto found = std::find_if(means_.begin(), means_.end(),
                                  [&](const RunningMean& mean) { return mean.name == name; });
  return found == means_.end() ? nullptr : &*found;
}

void RunningValues::add(const std::string& name, const LogValue& value, double weight,
                        int64_t step) {
  RunningMean& mean = at(name);
  if (value.is_tensor()) {
    mean.sum.add(value.tensor().detach(), weight, step);
  } else {
    mean.sum.add(value.item(), weight, step);
  }
  mean.weight += weight;
}

void RunningValues::add(const StepOutput& output, const std::string& loss_name, double weight,
                        int64_t step) {
  add(loss_name, LogValue(output.loss), weight, step);
  for (const auto& [name, value] : output.log) {
    add(name, value, weight, step);
  }
}

void RunningValues::reduce(const Ranks& ranks) {
  if (ranks.alone()) {
    return;
  }
  std::vector<std::string> names;
  for (const RunningMean& mean : means_) {
    names.push_back(mean.name);
  }
  for (const std::string& name : ranks.all_names(names)) {
    (void)at(name);
  }
  std::vector<double> numbers;
  for (const RunningMean& mean : means_) {
    numbers.insert(numbers.end(), {mean.sum.total(), mean.weight});
  }
  numbers = ranks.sum(numbers);
  for (size_t i = 0; i < means_.size(); ++i) {
    means_[i].sum = RunningLoss(numbers[2 * i] / ranks.count());
    means_[i].weight = numbers[2 * i + 1] / ranks.count();
  }
}

NamedValues RunningValues::means(const std::string& prefix) const {
  NamedValues values;
  for (const RunningMean& mean : means_) {
    values.emplace_back(prefix + mean.name, mean.mean());
  }
  return values;
}

double RunningValues::mean(const std::string& name) const {
  const RunningMean* found = find(name);
  return found ? found->mean() : 0;
}

}  // namespace binade::train
