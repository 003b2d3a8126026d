// DeviceOptimizer: the numbers of an optimizer that live on its device, so that a step waits for
// nothing. Internal to optim.
#pragma once
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/optim/device_scalars_internal.h>
#include <binade/optim/gradients_internal.h>
#include <binade/optim/optimizer.h>

#include <utility>
#include <vector>

namespace binade::optim {

class DeviceOptimizer {
 public:
  // rates: learning rate and momentum of each group. items: parameters of all groups.
  DeviceOptimizer(std::shared_ptr<Arena> arena, const std::vector<double>& rates, size_t items);

  // Gradient statistics of a step, of all ranks.
  void measure(const std::vector<GradientRange>& all, DeviceScaler* scaler);
  // AtFloor::clip: where the measured step overflows at the floor, gradients become finite.
  void replace_non_finite(const std::vector<GradientRange>& all, const DeviceScaler& scaler);
  // Returns the word of the step's outcome, which no later step writes.
  Tensor decide(const StepOptions& options, DeviceScaler* scaler);
  // How each parameter_range is updated: a row of RangeScalars per source. Counters move on.
  Tensor prepare(const std::vector<std::pair<size_t, size_t>>& moves,
                 const std::vector<kernels::RangeSource>& sources, double beta2);
  const double* rates_of(size_t group) const { return rates.view().as<double>() + 2 * group; }
  const double* counter(size_t index) const { return counters_.view().as<double>() + index; }

  // These wait for the device.
  int64_t applied_steps() const;
  double norm() const;
  double rate(size_t group, size_t which) const;  // 0: lr, 1: momentum
  std::vector<double> counters() const;

  size_t counter_count() const { return static_cast<size_t>(counters_.numel()); }
  void set_applied_steps(double steps);
  void set_rate(size_t group, size_t which, double value);
  void set_counters(std::vector<double> counters);  // at most one per item

  Tensor rates;              // f64 [groups, 2]: lr and momentum
  bool rates_moved = false;  // by a schedule on the device: the groups do not know them

 private:
  void join_measurements(bool measured);

  std::shared_ptr<Arena> arena_;
  Tensor words_;  // OptimizerScalars
  // f64 [items]: how often the items that name it were updated. Items share a counter as long as
  // they took part in the same steps, whether or not those were applied.
  Tensor counters_;
  // f64 [items, step_scalars of a parameter_range], of the step under way: held, because nothing
  // may fail once step_decide is queued.
  Tensor prepared_;
};

}  // namespace binade::optim
