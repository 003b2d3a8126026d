// What an optimizer saves and loads.
#include <binade/optim/device_words.h>
#include <binade/optim/optimizer.h>

#include <cmath>

namespace binade::optim {
namespace {

// One parameter's part of a flat tensor, in the parameter's shape.
Tensor part_of(const Tensor& flat, const Parameter& parameter) {
  return make_range(flat, parameter.value.sizes(), parameter.value.strides(), parameter.offset);
}

bool is_count(double value) { return value >= 0 && value <= 0x1p53 && value == std::floor(value); }

}  // namespace

NamedTensors Optimizer::state_tensors() const {
  NamedTensors state;
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) {
      const auto index = static_cast<size_t>(parameter.segment);
      const Tensor& masters = arena_->segments()[index].masters;
      if (masters.defined()) {
        state.emplace_back("master." + parameter.name, part_of(masters, parameter));
      }
      for (size_t k = 0; k < moments_.size(); ++k) {
        state.emplace_back(moment_names_[k] + "." + parameter.name,
                           part_of(moments_[k][index], parameter));
      }
    }
  }
  return state;
}

NamedScalars Optimizer::state_scalars() const {
  NamedScalars scalars;
  const auto steps = static_cast<double>(step_count());
  scalars["step"] = steps;
  const std::vector<double> counts = updates();
  size_t at = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    scalars["lr." + std::to_string(i)] = lr(i);
    if (has_momentum_) {
      scalars["momentum." + std::to_string(i)] = momentum(i);
    }
    for (const Item& item : groups_[i].items) {
      if (counts[at] != steps) {
        scalars["updates." + item.parameter.name] = counts[at];
      }
      ++at;
    }
  }
  return scalars;
}

void Optimizer::check_scalars(const NamedScalars& scalars) const {
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
  for (size_t i = 0; i < groups_.size(); ++i) {
    take("lr." + std::to_string(i), true, false);
    if (has_momentum_) {
      take("momentum." + std::to_string(i), false, false);
    }
    for (const Item& item : groups_[i].items) {
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

void Optimizer::load_state(const NamedTensors& tensors, const NamedScalars& scalars) {
  const NamedTensors own = state_tensors();
  std::vector<LoadTarget> targets;
  for (const auto& [name, tensor] : own) {
    targets.push_back({{name}, tensor.sizes()});
  }
  const std::vector<Tensor> sources = match_named("optimizer load_state", targets, tensors);
  check_scalars(scalars);
  const NoGradGuard guard;
  for (size_t i = 0; i < own.size(); ++i) {
    own[i].second.copy_(sources[i]);
  }
  const double steps = scalars.at("step");
  step_count_ = static_cast<int64_t>(steps);
  if (device_) {
    word_at(device_->words, offsetof(kernels::OptimizerWords, applied_steps) / sizeof(double))
        .fill_(steps);
  }
  std::vector<double> counts;
  for (size_t i = 0; i < groups_.size(); ++i) {
    set_lr(i, scalars.at("lr." + std::to_string(i)));
    if (const auto found = scalars.find("momentum." + std::to_string(i)); found != scalars.end()) {
      set_rate(i, 1, found->second);
    }
    for (Item& item : groups_[i].items) {
      const auto found = scalars.find("updates." + item.parameter.name);
      counts.push_back(found == scalars.end() ? steps : found->second);
      const Tensor& masters =
          arena_->segments()[static_cast<size_t>(item.parameter.segment)].masters;
      if (masters.defined()) {
        item.parameter.value.copy_(part_of(masters, item.parameter));
      }
    }
  }
  restore_updates(counts);
  zero_grad();
}

}  // namespace binade::optim
