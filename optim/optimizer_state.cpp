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

// f(name, parameter, moment) for every state tensor; moment -1 is the master.
template <class F>
void Optimizer::for_each_state(F f) const {
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) {
      if (arena_->segments()[static_cast<size_t>(parameter.segment)].masters.defined()) {
        f("master." + parameter.name, parameter, -1);
      }
      for (size_t k = 0; k < moments_.size(); ++k) {
        f(moment_names_[k] + "." + parameter.name, parameter, static_cast<int>(k));
      }
    }
  }
}

NamedTensors Optimizer::state_tensors() const {
  arena_->follow_values();
  std::vector<Tensor> masters;
  std::vector<std::vector<Tensor>> moments(moments_.size());  // [moment][segment]
  for (size_t i = 0; i < arena_->segments().size(); ++i) {
    const Arena::Segment& segment = arena_->segments()[i];
    const auto index = static_cast<int>(i);
    masters.push_back(segment.masters.defined() ? arena_->whole(segment.masters, index) : Tensor());
    for (size_t k = 0; k < moments_.size(); ++k) {
      moments[k].push_back(arena_->whole(moments_[k][i], index));
    }
  }
  NamedTensors state;
  for_each_state([&](const std::string& name, const Parameter& parameter, int moment) {
    const auto segment = static_cast<size_t>(parameter.segment);
    state.emplace_back(
        name, part_of(moment < 0 ? masters[segment] : moments[static_cast<size_t>(moment)][segment],
                      parameter));
  });
  return state;
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& moment : moments_) {
    for (const Tensor& state : moment) {
      bytes += state.numel() * static_cast<int64_t>(size_of(state.dtype()));
    }
  }
  return bytes;
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
  std::vector<LoadTarget> targets;
  for_each_state([&](const std::string& name, const Parameter& parameter, int) {
    targets.push_back({{name}, parameter.value.sizes()});
  });
  const std::vector<Tensor> sources = match_named("optimizer load_state", targets, tensors);
  check_scalars(scalars);
  const NoGradGuard guard;
  size_t next = 0;
  for_each_state([&](const std::string&, const Parameter& parameter, int moment) {
    const auto segment = static_cast<size_t>(parameter.segment);
    const Tensor& source = sources[next++];
    if (moment < 0) {
      arena_->set_value(parameter, source);
    } else {
      arena_->put(moments_[static_cast<size_t>(moment)][segment], parameter, source);
    }
  });
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
    }
  }
  restore_updates(counts);
  zero_grad();
}

}  // namespace binade::optim
