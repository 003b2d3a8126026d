// DeviceOptimizer: the scalars of an optimizer that are stored on its device, so that a step never
// waits for the device. Internal to optim.
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
  // rates: learning rate and momentum of each group. items: number of parameters of all groups.
  DeviceOptimizer(std::shared_ptr<Arena> arena, const std::vector<double>& rates, size_t items);

  // Computes the gradient statistics of a step over all ranks.
  void measure(const std::vector<GradientRange>& all, DeviceScaler* scaler);
  // For AtFloor::clip: if the measured step overflows at the floor, makes the gradients finite.
  void replace_non_finite(const std::vector<GradientRange>& all, const DeviceScaler& scaler);
  // Returns the device scalar with the step's outcome; no later step writes it.
  Tensor decide(const StepOptions& options, DeviceScaler* scaler);
  // Computes how each parameter range is updated, one row of RangeScalars per source, and advances
  // the counters.
  Tensor prepare(const std::vector<std::pair<size_t, size_t>>& moves,
                 const std::vector<kernels::RangeSource>& sources);
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
  bool rates_moved = false;  // by a schedule on the device: the groups have old values

 private:
  void join_measurements(bool measured);

  std::shared_ptr<Arena> arena_;
  Tensor scalars_;  // OptimizerScalars
  // f64 [items]: the number of updates of the items that use the counter. Items share a counter as
  // long as they took part in the same steps, applied or not.
  Tensor counters_;
  // f64 [items, scalars of a parameter range] of the current step. Allocated before, because
  // nothing may fail once step_decide is queued.
  Tensor prepared_;
};

}  // namespace binade::optim
