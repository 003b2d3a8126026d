#include <binade/core/observe/timeline.h>
#include <binade/core/observe/warning.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/device_optimizer_internal.h>
#include <binade/optim/optimizer_state_internal.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace binade::optim {
namespace {

bool is_rate(double value) { return std::isfinite(value) && value >= 0; }

// True for f16 and bf16 values without masters.
bool is_low_segment(const Arena::Segment& segment) {
  return is_half(segment.values.dtype()) && !segment.masters.defined();
}

}  // namespace

std::vector<ParamGroup> single_group(const ParameterList& parameters) { return {{parameters}}; }

Optimizer::Optimizer(const std::vector<ParamGroup>& groups,
                     const std::vector<GroupSettings>& settings, bool has_momentum,
                     std::vector<std::string> moment_names)
    : moment_names_(std::move(moment_names)), has_momentum_(has_momentum) {
  std::set<std::pair<int, int64_t>> seen;
  size_t items = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const ParamGroup& given = groups[i];
    const GroupSettings& own = settings[i];
    Group group{given.parameters.with_leaves(),
                own.lr,
                own.weight_decay,
                own.momentum.value_or(0),
                own.decay_norms_and_biases,
                own.maximize,
                {}};
    check(is_rate(group.lr), "optimizer: got lr = ", group.lr, ", expected a number >= 0");
    check(is_rate(group.weight_decay), "optimizer: got weight_decay = ", group.weight_decay,
          ", expected a number >= 0");
    check(!given.momentum || has_momentum_,
          "optimizer: got a group with a momentum, but the optimizer has none");
    check(is_rate(group.momentum), "optimizer: got momentum = ", group.momentum,
          ", expected a number >= 0");
    check(group.parameters.size() > 0,
          "optimizer: got a group without parameters, expected at least one; are the layers "
          "registered?");
    arena_ = arena_ ? arena_ : group.parameters.arena();
    check(arena_ == group.parameters.arena(),
          "optimizer: got parameters of several models or from before the model was moved; call "
          "parameters() on one model after to()");
    for (const Parameter& parameter : group.parameters) {
      check(parameter.numel() == 0 || seen.emplace(parameter.segment, parameter.offset).second,
            "optimizer: parameter ", parameter.name,
            " is in two groups, expected one; filter the parameters of each group by their names");
      group.items.push_back({parameter});
    }
    std::stable_sort(group.items.begin(), group.items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.parameter.segment, a.parameter.offset) <
             std::pair(b.parameter.segment, b.parameter.offset);
    });
    items += group.items.size();
    groups_.push_back(std::move(group));
  }
  check(arena_ != nullptr, "optimizer: got no parameters");
  check(!arena_->abandoned,
        "optimizer: got parameters from before the model was moved, converted or built into "
        "another; call parameters() after that");
  for (size_t i = 0; i < moment_names_.size(); ++i) {
    moments_.push_back(arena_->make_state());
  }
  if (!device().is_cpu()) {
    std::vector<double> rates;
    for (const Group& group : groups_) {
      rates.insert(rates.end(), {group.lr, group.momentum});
    }
    device_ = std::make_unique<DeviceOptimizer>(arena_, rates, items);
  }
  arena_->follow_values();
  ++arena_->optimizers;
}

Optimizer::~Optimizer() { --arena_->optimizers; }

const Optimizer::Group& Optimizer::at(size_t group) const {
  check(group < groups_.size(), "optimizer: got group ", group, " of ", groups_.size());
  return groups_[group];
}

std::vector<Optimizer::Extent> Optimizer::extents(size_t group) const {
  std::vector<Extent> all;
  for (const Item& item : at(group).items) {
    all.push_back({item.parameter.name, item.parameter.offset, item.parameter.numel()});
  }
  return all;
}

void Optimizer::fill_moment(size_t moment, size_t group, double value) const {
  for (const Item& item : at(group).items) {
    const Tensor& state = moments_.at(moment)[static_cast<size_t>(item.parameter.segment)];
    Tensor values = empty(item.parameter.value.sizes(), state.dtype(), state.device());
    values.fill_(value);
    arena_->put(state, item.parameter, values);
  }
}

void Optimizer::set_low_updates(LowUpdates how, uint64_t seed) {
  const std::vector<Arena::Segment>& segments = arena_->segments();
  check(step_count() == 0, "set_low_updates: got an optimizer after ", step_count(),
        " steps, expected one before its first step");
  check(how == LowUpdates::nearest || std::any_of(segments.begin(), segments.end(), is_low_segment),
        "set_low_updates: got parameters with f32 masters, or in f32, which lose no update, "
        "expected f16 or bf16 without masters: Precision::half (half-bf16)");
  low_updates_ = how;
  low_seed_ = seed;
  compensations_.clear();
  for (const Arena::Segment& segment : segments) {
    if (how == LowUpdates::compensated) {
      const bool low = is_low_segment(segment);
      compensations_.push_back(low ? zeros({segment.own_numel()}, segment.values.dtype(), device())
                                   : Tensor());
    }
  }
}

void Optimizer::zero_grad() {
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      if (item.parameter.value.requires_grad()) {
        item.parameter.value.zero_grad();
      }
    }
  }
}

// Ranges of items that have a gradient. Items that are adjacent in memory and have the same update
// are joined.
std::vector<Optimizer::ParameterRange> Optimizer::parameter_ranges(const Group& group) const {
  std::vector<ParameterRange> all;
  for (size_t i = 0; i < group.items.size(); ++i) {
    const auto& [parameter, updates, counter] = group.items[i];
    Leaf* leaf = leaf_with_gradient(parameter);
    if (!leaf) {
      continue;
    }
    move_into_arena(*arena_, parameter, *leaf);
    const bool decays = group.decay_norms_and_biases || !parameter.norm_or_bias;
    const ParameterRange own{i,
                             i + 1,
                             parameter.segment,
                             parameter.offset,
                             parameter.numel(),
                             group.maximize ? -leaf->scale : leaf->scale,
                             decays ? group.weight_decay : 0,
                             updates,
                             counter,
                             leaf->device_scale};
    ParameterRange* last = all.empty() ? nullptr : &all.back();
    if (last && last->last == i && last->continues_in(own, keeps_zeros())) {
      last->last = i + 1;
      last->numel = own.offset + own.numel - last->offset;
    } else {
      all.push_back(own);
    }
  }
  return all;
}

bool Optimizer::ParameterRange::continues_in(const ParameterRange& next, bool over_gaps) const {
  const int64_t end = offset + numel;
  const int64_t aligned = (end + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
  const bool scaled_alike = scale == next.scale && tag.handle().get() == next.tag.handle().get();
  if (segment != next.segment || !scaled_alike) {
    return false;
  }
  return next.offset == (over_gaps ? aligned : end) && weight_decay == next.weight_decay &&
         updates == next.updates && counter == next.counter;
}

std::vector<GradientRange> Optimizer::gradients() const {
  std::vector<const Parameter*> all;
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      all.push_back(&item.parameter);
    }
  }
  return gradient_ranges(*arena_, std::move(all));
}

// For a sharded arena: cuts the range down to the part of this rank.
bool Optimizer::own_part(ParameterRange& parameter_range) const {
  const Arena::Segment& segment = arena_->segments()[static_cast<size_t>(parameter_range.segment)];
  const int64_t begin = std::max(parameter_range.offset, segment.own_begin),
                end = std::min(parameter_range.offset + parameter_range.numel, segment.own_end);
  parameter_range.offset = begin;
  parameter_range.numel = end - begin;
  return parameter_range.numel > 0 || arena_->sharding() == Sharding::none;
}

GradientSummary Optimizer::gradient_summary() const {
  const Squares all = squares_of_ranks(*arena_, squares(gradients(), device()));
  GradientSummary summary{.norm = std::sqrt(all.sum), .non_finite = all.non_finite};
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      summary.parameters += leaf_with_gradient(item.parameter) != nullptr;
    }
  }
  return summary;
}

std::string Optimizer::first_non_finite() const {
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) {
      Squares own;
      for (const GradientRange& range : gradient_ranges(*arena_, {&parameter})) {
        own.non_finite += squares(range.grad).non_finite;
      }
      if (squares_of_ranks(*arena_, own).non_finite > 0) {
        return parameter.name;
      }
    }
  }
  return {};
}

// The first step warns if a LossScaler scaled the loss but does not check this step. The step is
// right all the same, but an overflow stays unnoticed.
void Optimizer::check_unscaled(const StepOptions& options) const {
  if (step_count_ > 0 || options.accumulating) {
    return;
  }
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      const Tensor& value = item.parameter.value;
      if (!value.requires_grad()) {
        continue;
      }
      const Leaf& leaf = item.parameter.leaf();
      if (leaf.has_grad && (leaf.scale != 1 || leaf.device_scale.defined())) {
        warn(text(
            "step: got gradients with a loss scale, expected a step of the scaler: call "
            "scaler.step(optimizer), else no overflow is noticed and the scale never changes"));
        return;
      }
    }
  }
}

StepResult Optimizer::step(const StepOptions& options) {
  const PhaseSpan phase("optimizer");
  check_unscaled(options);
  if (device_) {
    return step_on_device(options, nullptr);
  }
  return step(options, nullptr);
}

int64_t Optimizer::step_count() const { return device_ ? device_->applied_steps() : step_count_; }

double Optimizer::last_norm() const { return device_ ? device_->norm() : last_norm_; }

void Optimizer::check_options(const StepOptions& options) const {
  check(std::isfinite(options.divisor) && options.divisor > 0,
        "step: got divisor = ", options.divisor, ", expected a positive number");
  check(!options.clip_norm || *options.clip_norm > 0,
        "step: got clip_norm = ", options.clip_norm.value_or(0), ", expected a positive number");
  if (options.accumulating || (options.divisor == 1 && !options.clip_norm)) {
    return;
  }
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      const Leaf* leaf = leaf_with_gradient(item.parameter);
      check(!leaf || options.divisor == 1 || !(leaf->clipped_norm || leaf->clipped_value),
            "step: got divisor = ", options.divisor, " for gradients that are clipped already (",
            item.parameter.name,
            "): the limit held for the sum of the window, not for its mean; leave the clipping to "
            "the step (clip_norm), or the division to the weights of the losses");
      check(!leaf || !options.clip_norm || !leaf->clipped_norm,
            "step: got clip_norm for gradients that clip_grad_norm has clipped already (",
            item.parameter.name, "); use one of them");
    }
  }
}

StepOutcome Optimizer::step(const StepOptions& options, const GradientSummary* known) {
  check_options(options);
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  arena_->follow_values();
  const double factor = 1 / options.divisor;
  double clip = 1;
  last_norm_ = -1;
  if (known || options.measures()) {
    const GradientSummary summary = known ? *known : gradient_summary();
    if (options.check_finite && summary.non_finite > 0) {
      zero_grad();
      return StepOutcome::overflow;
    }
    last_norm_ = summary.norm / options.divisor;
    if (options.clip_norm) {
      clip = kernels::clip_factor(*options.clip_norm, last_norm_, summary.non_finite == 0);
    }
  }
  bool any = false;
  for (size_t group = 0; group < groups_.size(); ++group) {
    any |= apply(group, factor, clip);
  }
  check(any, "step: no parameter has a gradient; call backward before step");
  arena_->gather_values();
  zero_grad();
  ++step_count_;
  return StepOutcome::applied;
}

// The argument of update(). The caller sets multiplier and update.
Optimizer::Range Optimizer::range_of(size_t group, const ParameterRange& parameter_range) const {
  const auto index = static_cast<size_t>(parameter_range.segment);
  const Arena::Segment& segment = arena_->segments()[index];
  const auto flat = [&](const Tensor& t, int64_t begin) {
    return flat_view(t, parameter_range.offset - begin, parameter_range.numel);
  };
  Range range{.param = flat(segment.values, 0),
              .master = flat(segment.masters, segment.own_begin),
              .grad = flat(segment.gradients, segment.gradients_begin),
              .moments = {},
              .lr = groups_[group].lr,
              .weight_decay = parameter_range.weight_decay,
              .momentum = groups_[group].momentum,
              .grad_multiplier = 1,
              .update = 1,
              .group = group,
              .first = parameter_range.first,
              .last = parameter_range.last};
  for (const auto& moment : moments_) {
    range.moments.push_back(flat(moment[index], segment.own_begin));
  }
  if (low_updates_ != LowUpdates::nearest && is_low_segment(segment)) {
    constexpr uint64_t kSegmentKey = 0x9e37'79b9'7f4a'7c15;
    range.low = {.how = low_updates_,
                 .compensation = compensations_.empty()
                                     ? kNoView
                                     : flat(compensations_[index], segment.own_begin),
                 .seed = low_seed_ + kSegmentKey * index,
                 .first = parameter_range.offset};
  }
  return range;
}

bool Optimizer::apply(size_t index, double factor, double clip) {
  Group& group = groups_[index];
  const std::vector<ParameterRange> all = parameter_ranges(group);
  for (ParameterRange parameter_range : all) {
    if (own_part(parameter_range)) {
      Range range = range_of(index, parameter_range);
      range.grad_multiplier = kernels::gradient_multiplier(factor, clip, parameter_range.scale);
      range.update = range.low.update = parameter_range.updates + 1;
      update(range);
    }
    for (size_t i = parameter_range.first; i < parameter_range.last; ++i) {
      ++group.items[i].updates;
      group.items[i].parameter.value.bump_version();
      arena_->note_agreement(group.items[i].parameter);
    }
  }
  return !all.empty();
}

// learning rates and momenta, on the host or on the device ----------------------------------------

double Optimizer::rate(size_t group, size_t which) const {
  const Group& own = at(group);
  if (device_ && device_->rates_moved) {
    return device_->rate(group, which);
  }
  return which == 0 ? own.lr : own.momentum;
}

void Optimizer::set_rate(size_t group, size_t which, double value) {
  (void)at(group);
  (which == 0 ? groups_[group].lr : groups_[group].momentum) = value;
  if (device_) {
    device_->set_rate(group, which, value);
  }
}

double Optimizer::lr(size_t group) const { return rate(group, 0); }

void Optimizer::set_lr(double lr) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    set_lr(i, lr);
  }
}

void Optimizer::set_lr(size_t group, double lr) {
  check(is_rate(lr), "set_lr: got ", lr, ", expected a number >= 0");
  set_rate(group, 0, lr);
}

double Optimizer::momentum(size_t group) const {
  check(has_momentum_, "momentum: this optimizer was made without momentum");
  return rate(group, 1);
}

void Optimizer::set_momentum(double momentum) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    set_momentum(i, momentum);
  }
}

void Optimizer::set_momentum(size_t group, double momentum) {
  check(has_momentum_, "set_momentum: this optimizer was made without momentum");
  check(momentum >= 0 && momentum < 1, "set_momentum: got ", momentum,
        ", expected a number in [0, 1)");
  set_rate(group, 1, momentum);
}

// a step on a device: launches only, no waiting ---------------------------------------------------

bool Optimizer::has_gradient() const {
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      if (leaf_with_gradient(item.parameter)) {
        return true;
      }
    }
  }
  return false;
}

StepResult Optimizer::step_on_device(const StepOptions& options,
                                     const std::shared_ptr<DeviceScaler>& scaler) {
  check_options(options);
  if (options.accumulating) {
    return StepOutcome::accumulating;
  }
  arena_->follow_values();
  const std::vector<GradientRange> all = gradients();
  check(!all.empty() || has_gradient(),  // of which this rank owns nothing
        "step: no parameter has a gradient; call backward before step");
  const bool measured = scaler || options.measures();
  if (measured) {
    device_->measure(all, scaler.get());
  }
  if (scaler && scaler->rule.at_floor == kernels::AtFloor::clip) {
    device_->replace_non_finite(all, *scaler);
    device_->measure(all, scaler.get());
  }
  Tensor outcome = device_->decide(options, scaler.get());
  apply_on_device();
  arena_->gather_values();
  zero_grad();
  return {std::move(outcome), scaler};
}

void Optimizer::apply_on_device() {
  std::vector<std::pair<size_t, size_t>> moves;
  move_counters(moves);
  std::vector<kernels::RangeSource> sources;
  std::vector<Range> ranges;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (ParameterRange parameter_range : parameter_ranges(groups_[i])) {
      for (size_t k = parameter_range.first; k < parameter_range.last; ++k) {
        groups_[i].items[k].parameter.value.bump_version();
        arena_->note_agreement(groups_[i].items[k].parameter);
      }
      if (!own_part(parameter_range)) {
        continue;
      }
      sources.push_back({.scale = parameter_range.scale,
                         .tag = parameter_range.tag.view().as<double>(),
                         .lr = device_->rates_of(i),
                         .momentum = device_->rates_of(i) + 1,
                         .counter = device_->counter(parameter_range.counter),
                         .beta2 = beta2(i)});
      ranges.push_back(range_of(i, parameter_range));
    }
  }
  constexpr int64_t kScalars = kernels::kScalarsOf<kernels::RangeScalars>;
  const Tensor prepared = device_->prepare(moves, sources);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].step_scalars = flat_view(prepared, static_cast<int64_t>(i) * kScalars, kScalars);
    update(ranges[i]);
  }
}

// Lists the counters that this step advances, with their targets. If all items of a counter have a
// gradient, the target is the counter itself; else the items with a gradient get an unused counter.
void Optimizer::move_counters(std::vector<std::pair<size_t, size_t>>& moves) {
  const auto count = device_->counter_count();
  std::vector<size_t> users(count), taking(count), target(count);
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      ++users[item.counter];
      taking[item.counter] += leaf_with_gradient(item.parameter) != nullptr;
    }
  }
  size_t unused = 0;
  for (size_t from = 0; from < count; ++from) {
    if (taking[from] == 0) {
      continue;
    }
    target[from] = from;
    if (taking[from] < users[from]) {
      while (users[unused] != 0) {  // there are as many counters as items
        ++unused;
      }
      users[unused] = taking[from];
      target[from] = unused;
    }
    moves.emplace_back(from, target[from]);
  }
  for (Group& group : groups_) {
    for (Item& item : group.items) {
      if (leaf_with_gradient(item.parameter)) {
        item.counter = target[item.counter];
      }
    }
  }
}

std::vector<double> Optimizer::updates() const {
  std::vector<double> updates;
  const std::vector<double> counters = device_ ? device_->counters() : std::vector<double>();
  for (const Group& group : groups_) {
    for (const Item& item : group.items) {
      updates.push_back(device_ ? counters[item.counter] : static_cast<double>(item.updates));
    }
  }
  return updates;
}

void Optimizer::restore_updates(const std::vector<double>& updates) {
  std::vector<double> counters;
  size_t i = 0;
  for (Group& group : groups_) {
    for (Item& item : group.items) {
      if (!device_) {
        item.updates = static_cast<int64_t>(updates[i++]);
        continue;
      }
      item.counter = 0;
      while (item.counter < counters.size() && counters[item.counter] != updates[i]) {
        ++item.counter;
      }
      if (item.counter == counters.size()) {
        counters.push_back(updates[i]);
      }
      ++i;
    }
  }
  if (device_) {
    device_->set_counters(std::move(counters));
  }
}

// saving and loading ------------------------------------------------------------------------------

NamedTensors Optimizer::state_tensors() const { return OptimizerState::tensors(*this); }
NamedScalars Optimizer::state_scalars() const { return OptimizerState::scalars(*this); }
void Optimizer::load_state(const NamedTensors& tensors, const NamedScalars& scalars) {
  OptimizerState::load(*this, tensors, scalars);
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& moment : moments_) {
    for (const Tensor& state : moment) {
      bytes += state.numel() * static_cast<int64_t>(size_of(state.dtype()));
    }
  }
  for (const Tensor& rest : compensations_) {
    bytes += rest.defined() ? rest.numel() * static_cast<int64_t>(size_of(rest.dtype())) : 0;
  }
  return bytes;
}

}  // namespace binade::optim
