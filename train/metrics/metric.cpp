#include <binade/train/metrics/metric.h>

#include <algorithm>

namespace binade::train {

Metric::Metric(std::string name) : name_(std::move(name)) {
  check(!name_.empty(), "metric: got an empty name, expected one such as \"accuracy\"");
}

double Metric::value() const {
  fail("metric ", name_, ": got a class that overrides neither value() nor values()");
}

NamedValues Metric::values() const { return {{name_, value()}}; }

std::string Metric::report() const { return ""; }

void Metric::add_state(std::shared_ptr<MetricState> state) {
  for (const auto& other : states_) {
    check(other->name() != state->name(), "metric ", name_, ": got two states with the name '",
          state->name(), "', expected another name for each");
  }
  states_.push_back(std::move(state));
}

void Metric::reset() {
  for (const auto& state : states_) {
    state->reset();
  }
}

void Metric::reduce(dist::Communicator& group) {
  for (const auto& state : states_) {
    state->reduce(group);
  }
}

NamedTensors Metric::state() const {
  NamedTensors all;
  for (const auto& state : states_) {
    all.emplace_back(state->name(), state->save());
  }
  return all;
}

void Metric::load_state(const NamedTensors& state) {
  const std::string what = "metric " + name_ + ": state";
  std::vector<Tensor> found;
  for (const auto& own : states_) {
    const auto at = std::find_if(state.begin(), state.end(),
                                 [&](const auto& entry) { return entry.first == own->name(); });
    check(at != state.end(), what, " has no tensor '", own->name(), "'");
    own->check_saved(at->second, text(what, " '", own->name(), "'"));
    found.push_back(at->second);
  }
  check(state.size() == states_.size(), what, ": got ", state.size(), " tensors, expected ",
        states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i]->load(found[i]);
  }
}

}  // namespace binade::train
