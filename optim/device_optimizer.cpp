#include <binade/core/tensor/create.h>
#include <binade/core/tensor/rank_group.h>
#include <binade/kernels/optimizer/gradient_values.h>
#include <binade/optim/device_optimizer_internal.h>

namespace binade::optim {

using kernels::OptimizerScalars;
using kernels::RangeScalars;

DeviceOptimizer::DeviceOptimizer(std::shared_ptr<Arena> arena, const std::vector<double>& rates,
                                 size_t items)
    : rates(from_values(rates, {static_cast<int64_t>(rates.size()) / 2, 2}, DType::f64,
                        arena->device())),
      arena_(std::move(arena)) {
  const Device device = arena_->device();
  OptimizerScalars step_scalars;
  step_scalars.norm = -1;
  scalars_ = make_device_scalars(step_scalars, device);
  counters_ = zeros({static_cast<int64_t>(items)}, DType::f64, device);
  prepared_ =
      empty({static_cast<int64_t>(items) * kernels::kScalarsOf<RangeScalars>}, DType::f64, device);
}

void DeviceOptimizer::measure(const std::vector<GradientRange>& all, DeviceScaler* scaler) {
  for (const GradientRange& range : all) {
    kernels::step_stats(
        {.grad = range.grad,
         .scale = range.scale,
         .tag = range.tag,
         .position = scaler ? scaler->position(arena_, range.segment, range.offset) : 0,
         .first = &range == all.data(),
         .step_scalars = scalars_});
  }
  if (arena_->sharding() == Sharding::gradients) {
    join_measurements(!all.empty());
  }
}

// After each rank has measured its shard (or has nothing in it), combines the measurements of all
// ranks, in the order of the ranks, into the device scalars. Waits for the device; the
// reduction of the gradients has waited already.
void DeviceOptimizer::join_measurements(bool measured) {
  constexpr int64_t kRow = 5;
  RankGroup& group = *arena_->group();
  auto step_scalars = read_device_scalars<OptimizerScalars>(scalars_);
  const Tensor rows = zeros({group.size() * kRow}, DType::f64);
  if (measured) {
    double* own = rows.data<double>() + group.rank() * kRow;
    own[0] = step_scalars.squares, own[1] = step_scalars.non_finite,
    own[2] = step_scalars.first_position;
    own[3] = step_scalars.scale, own[4] = step_scalars.mixed;
  }
  std::vector<int64_t> bounds;
  for (int rank = 0; rank <= group.size(); ++rank) {
    bounds.push_back(rank * kRow);
  }
  group.gather_ranges(rows, bounds);
  kernels::begin_measurement(step_scalars);
  bool mixed = false;
  for (const double* row = rows.data<double>(); row < rows.data<double>() + rows.numel();
       row += kRow) {
    mixed |= row[4] != 0;
    if (row[3] != 0) {  // the rank has measured something: its scale
      kernels::add_measurement(
          {.squares = row[0], .non_finite = row[1], .first_position = row[2], .scale = row[3]},
          step_scalars);
    }
  }
  step_scalars.mixed = mixed || step_scalars.mixed != 0 ? 1 : 0;
  scalars_.copy_(make_device_scalars(step_scalars, Device{}));
}

void DeviceOptimizer::replace_non_finite(const std::vector<GradientRange>& all,
                                         const DeviceScaler& scaler) {
  kernels::step_replaces(
      {.rule = scaler.rule, .scaler = scaler.step_scalars, .step_scalars = scalars_});
  const Tensor replaces =
      scalar_at(scalars_, offsetof(OptimizerScalars, replaces) / sizeof(double));
  for (const GradientRange& range : all) {
    kernels::replace_non_finite({.grad = range.grad, .when = replaces});
  }
}

Tensor DeviceOptimizer::decide(const StepOptions& options, DeviceScaler* scaler) {
  Tensor outcome = empty({1}, DType::f64, scalars_.device());
  kernels::StepRequest request{.divisor = options.divisor,
                               .clip_norm = options.clip_norm.value_or(0),
                               .check_finite = options.check_finite,
                               .measured = scaler || options.measures()};
  if (scaler) {
    request.stale = !scaler->went_backward;
    request.rule = scaler->rule;
    scaler->tag_is_old = true;
  }
  kernels::step_decide({.request = request,
                        .scaler = scaler ? scaler->step_scalars.view() : kNoView,
                        .step_scalars = scalars_,
                        .outcome = outcome});
  return outcome;
}

Tensor DeviceOptimizer::prepare(const std::vector<std::pair<size_t, size_t>>& moves,
                                const std::vector<kernels::RangeSource>& sources) {
  auto* counters = counters_.view().as<double>();
  std::vector<kernels::UpdateCounter> moved;
  for (const auto& [from, to] : moves) {
    moved.push_back({counters + from, counters + to});
  }
  constexpr int64_t kScalars = kernels::kScalarsOf<RangeScalars>;
  Tensor prepared = make_view(prepared_, {static_cast<int64_t>(sources.size()) * kScalars}, {1});
  kernels::step_prepare({.counters = moved,
                         .parameter_ranges = sources,
                         .step_scalars = scalars_,
                         .result = prepared});
  return prepared;
}

int64_t DeviceOptimizer::applied_steps() const {
  return static_cast<int64_t>(read_device_scalars<OptimizerScalars>(scalars_).applied_steps);
}

double DeviceOptimizer::norm() const {
  return read_device_scalars<OptimizerScalars>(scalars_).norm;
}

double DeviceOptimizer::rate(size_t group, size_t which) const {
  return scalar_at(rates, static_cast<int64_t>(2 * group + which)).item();
}

std::vector<double> DeviceOptimizer::counters() const {
  const Tensor host = counters_.to(Device{});
  return {host.data<double>(), host.data<double>() + host.numel()};
}

void DeviceOptimizer::set_applied_steps(double steps) {
  scalar_at(scalars_, offsetof(OptimizerScalars, applied_steps) / sizeof(double)).fill_(steps);
}

void DeviceOptimizer::set_rate(size_t group, size_t which, double value) {
  scalar_at(rates, static_cast<int64_t>(2 * group + which)).fill_(value);
}

void DeviceOptimizer::set_counters(std::vector<double> counters) {
  counters.resize(counter_count());
  counters_ = from_values(counters, counters_.sizes(), DType::f64, counters_.device());
}

}  // namespace binade::optim
