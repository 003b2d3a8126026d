#include <binade/optim/device_optimizer_internal.h>
#include <binade/optim/optimizer_state_internal.h>

#include <cmath>

namespace binade::optim {
namespace {

// One parameter's part of a flat tensor, in the parameter's shape.
Tensor part_of(const Tensor& flat, const Parameter& parameter) {
  return make_range(flat, parameter.value.sizes(), parameter.value.strides(), parameter.offset);
}

constexpr int kCompensation = -2;

bool is_count(double value) { return value >= 0 && value <= 0x1p53 && value == std::floor(value); }

}  // namespace

// Calls f(name, parameter, moment) for each state tensor; moment -1: the master; or kCompensation.
template <class F>
void OptimizerState::for_each(const Optimizer& optimizer, F f) {
  for (const Optimizer::Group& group : optimizer.groups_) {
    for (const Parameter& parameter : group.parameters) {
      if (optimizer.arena_->segments()[static_cast<size_t>(parameter.segment)].masters.defined()) {
        f("master." + parameter.name, parameter, -1);
      }
      for (size_t k = 0; k < optimizer.moments_.size(); ++k) {
        f(optimizer.moment_names_[k] + "." + parameter.name, parameter, static_cast<int>(k));
      }
      const auto segment = static_cast<size_t>(parameter.segment);
      if (!optimizer.compensations_.empty() && optimizer.compensations_[segment].defined()) {
        f("compensation." + parameter.name, parameter, kCompensation);
      }
    }
  }
}

NamedTensors OptimizerState::tensors(const Optimizer& optimizer) {
  optimizer.arena_->follow_values();
  std::vector<Tensor> masters, compensations;
  std::vector<std::vector<Tensor>> moments(optimizer.moments_.size());  // [moment][segment]
  for (size_t i = 0; i < optimizer.arena_->segments().size(); ++i) {
    const Arena::Segment& segment = optimizer.arena_->segments()[i];
    const auto index = static_cast<int>(i);
    masters.push_back(segment.masters.defined() ? optimizer.arena_->whole(segment.masters, index)
                                                : Tensor());
    if (!optimizer.compensations_.empty()) {
      const Tensor& rest = optimizer.compensations_[i];
      compensations.push_back(rest.defined() ? optimizer.arena_->whole(rest, index) : Tensor());
    }
    for (size_t k = 0; k < optimizer.moments_.size(); ++k) {
      moments[k].push_back(optimizer.arena_->whole(optimizer.moments_[k][i], index));
    }
  }
  NamedTensors state;
  for_each(optimizer, [&](const std::string& name, const Parameter& parameter, int moment) {
    const auto segment = static_cast<size_t>(parameter.segment);
    const Tensor& flat = moment == kCompensation ? compensations[segment]
                         : moment < 0            ? masters[segment]
                                                 : moments[static_cast<size_t>(moment)][segment];
    state.emplace_back(name, part_of(flat, parameter));
  });
  return state;
}

NamedScalars OptimizerState::scalars(const Optimizer& optimizer) {
  NamedScalars scalars;
  const auto steps = static_cast<double>(optimizer.step_count());
  scalars["step"] = steps;
  const std::vector<double> counts = optimizer.updates();
  size_t at = 0;
  for (size_t i = 0; i < optimizer.groups_.size(); ++i) {
    scalars["lr." + std::to_string(i)] = optimizer.lr(i);
    if (optimizer.has_momentum_) {
      scalars["momentum." + std::to_string(i)] = optimizer.momentum(i);
    }
    for (const Optimizer::Item& item : optimizer.groups_[i].items) {
      if (counts[at] != steps) {
        scalars["updates." + item.parameter.name] = counts[at];
      }
      ++at;
    }
  }
  return scalars;
}

void OptimizerState::check_scalars(const Optimizer& optimizer, const NamedScalars& scalars) {
  NamedScalars left = scalars;
  std::vector<std::string> wrong;
  const auto take = [&](const std::string& name, bool required, bool count) {
    const auto found = left.find(name);
    if (found == left.end() ? required
                            : (count ? !is_count(found->second) : !(found->second >= 0))) {
      wrong.push_back(name);
    }
    if (found != left.end()) {
      left.erase(found);
    }
  };
  take("step", true, true);
  for (size_t i = 0; i < optimizer.groups_.size(); ++i) {
    take("lr." + std::to_string(i), true, false);
    if (optimizer.has_momentum_) {
      take("momentum." + std::to_string(i), false, false);
    }
    for (const Optimizer::Item& item : optimizer.groups_[i].items) {
      take("updates." + item.parameter.name, false, true);
    }
  }
  for (const auto& [name, value] : left) {
    wrong.push_back(name);
  }
  check(wrong.empty(),
        "optimizer load_state: missing, unexpected or impossible numbers: ", list_names(wrong),
        "; nothing was changed");
}

void OptimizerState::load(Optimizer& optimizer, const NamedTensors& tensors,
                          const NamedScalars& scalars) {
  std::vector<LoadTarget> targets;
  for_each(optimizer, [&](const std::string& name, const Parameter& parameter, int) {
    targets.push_back({{name}, parameter.value.sizes()});
  });
  const std::vector<Tensor> sources = match_named("optimizer load_state", targets, tensors);
  check_scalars(optimizer, scalars);
  const NoGradGuard guard;
  size_t next = 0;
  for_each(optimizer, [&](const std::string&, const Parameter& parameter, int moment) {
    const auto segment = static_cast<size_t>(parameter.segment);
    const Tensor& source = sources[next++];
    if (moment == kCompensation) {
      optimizer.arena_->put(optimizer.compensations_[segment], parameter, source);
    } else if (moment < 0) {
      optimizer.arena_->set_value(parameter, source);
    } else {
      optimizer.arena_->put(optimizer.moments_[static_cast<size_t>(moment)][segment], parameter,
                            source);
    }
  });
  const double steps = scalars.at("step");
  optimizer.step_count_ = static_cast<int64_t>(steps);
  if (optimizer.device_) {
    optimizer.device_->set_applied_steps(steps);
  }
  std::vector<double> counts;
  for (size_t i = 0; i < optimizer.groups_.size(); ++i) {
    optimizer.set_lr(i, scalars.at("lr." + std::to_string(i)));
    if (const auto found = scalars.find("momentum." + std::to_string(i)); found != scalars.end()) {
      optimizer.set_rate(i, 1, found->second);
    }
    for (const Optimizer::Item& item : optimizer.groups_[i].items) {
      const auto found = scalars.find("updates." + item.parameter.name);
      counts.push_back(found == scalars.end() ? steps : found->second);
    }
  }
  optimizer.restore_updates(counts);
  optimizer.zero_grad();
}

}  // namespace binade::optim
