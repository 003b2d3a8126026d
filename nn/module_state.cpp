// The state of a module: saving, loading, copying, following.
#include <binade/core/ops.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/format_histories.h>
#include <binade/nn/module.h>
#include <binade/nn/module_walk_internal.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <typeinfo>

namespace binade::nn {
namespace {

// NaN equals NaN.
bool same_values(const Tensor& a, const Tensor& b) {
  const NoGradGuard guard;
  return a.sizes() == b.sizes() && (a.handle().get() == b.handle().get() ||
                                    allclose(a, b.to(a.device()).to(a.dtype()), 0, 0, true));
}

// LoadPlan matches the entries of a state with the model's tensors. Add all entries, then targets.
class LoadPlan {
 public:
  explicit LoadPlan(const LoadOptions& options)
      : options_(options),
        renamed_(options.rename.size(), false),
        skipped_(options.skip.size(), false) {}

  void add_entry(const std::string& name, const Tensor& tensor) {
    const std::string own = rename(name);
    if (skips(own)) {
      report.unexpected.push_back(name);
      return;
    }
    entries_.push_back({name, own, tensor});
    given_.insert(own);
  }
  void add_target(LoadTarget target, const Tensor& tensor) {
    bool skipped = false, present = false;
    for (const std::string& name : target.names) {
      skipped |= skips(name);
      present |= given_.contains(name);
    }
    if (!present && (skipped || !options_.strict)) {
      report.missing.push_back(target.names[0]);
      return;
    }
    report.loaded.push_back(target.names[0]);
    taken_.insert(target.names.begin(), target.names.end());
    targets_.push_back(std::move(target));
    tensors.push_back(tensor);
  }
  // The source of each of `tensors`.
  std::vector<Tensor> match() {
    check_all_used();
    NamedTensors given;
    for (const Entry& entry : entries_) {
      if (options_.strict || taken_.contains(entry.own)) {
        given.emplace_back(entry.own, entry.tensor);
      } else {
        report.unexpected.push_back(entry.name);
      }
    }
    std::vector<Tensor> sources = match_named("load_state", targets_, given);
    check_ties(given);
    return sources;
  }

  LoadReport report;
  std::vector<Tensor> tensors;

 private:
  struct Entry {
    std::string name, own;  // in the state, and after renaming
    Tensor tensor;
  };

  std::string rename(const std::string& name) {
    for (size_t i = 0; i < options_.rename.size(); ++i) {
      const auto& [from, to] = options_.rename[i];
      if (from.empty() || name == from || name.starts_with(from + ".")) {
        renamed_[i] = true;
        const size_t rest = from.empty() ? 0 : std::min(name.size(), from.size() + 1);
        return join_path(to, name.substr(rest));
      }
    }
    return name;
  }
  bool skips(const std::string& name) {
    bool any = false;
    for (size_t i = 0; i < options_.skip.size(); ++i) {
      if (matches_module(options_.skip[i], name)) {
        any = skipped_[i] = true;
      }
    }
    return any;
  }
  void check_all_used() const {
    for (size_t i = 0; i < renamed_.size(); ++i) {
      check(renamed_[i], "load_state: got rename from '", options_.rename[i].first,
            "', but the state has no such name; nothing was changed");
    }
    for (size_t i = 0; i < skipped_.size(); ++i) {
      check(skipped_[i], "load_state: got skip '", options_.skip[i],
            "', which matches no name of the model or of the state; nothing was changed");
    }
  }

  // A tied parameter may be given under several of its names, with one value.
  void check_ties(const NamedTensors& given) const {
    for (const LoadTarget& target : targets_) {
      const NamedTensors::value_type* first = nullptr;
      for (const auto& entry : given) {
        if (target.names.size() == 1 || std::ranges::count(target.names, entry.first) == 0) {
          continue;
        }
        first = first ? first : &entry;
        check(same_values(first->second, entry.second), "load_state: got '", first->first, "' ",
              first->second.sizes(), " and '", entry.first, "' ", entry.second.sizes(),
              " with different values, but the model ties them to one parameter; leave one out; "
              "nothing was changed");
      }
    }
  }

  const LoadOptions& options_;
  std::vector<bool> renamed_, skipped_;  // which options were used
  std::vector<Entry> entries_;
  std::set<std::string> given_, taken_;
  std::vector<LoadTarget> targets_;
};

Tensor copy_of(const Tensor& value) {
  Tensor copy = empty(value.sizes(), value.dtype(), value.device());
  copy.copy_(value);
  return copy;
}

}  // namespace

NamedTensors Module::state() const {
  NamedTensors state;
  std::map<const OwnParameter*, std::string> first;
  for (const Shared& parameter : shared_parameters()) {
    first.emplace(parameter.members[0].own, parameter.name());
  }
  walk("", [&](const std::string& at, const Module& module) {
    for (const auto& own : module.own_parameters_) {
      if (first.contains(own.get())) {
        state.emplace_back(join_path(at, own->name), own->tensor->detach());
      }
    }
    for (const auto& [name, tensor] : module.own_buffers_) {
      state.emplace_back(join_path(at, name), tensor->detach());
    }
  });
  return state;
}

NamedTensors Module::exact_state() const {
  NamedTensors state = this->state();
  for (auto& [name, tensor] : state) {
    tensor = exact_value(tensor);
  }
  return state;
}

LoadReport Module::load_state(const NamedTensors& state, const LoadOptions& options) {
  LoadPlan plan(options);
  for (const auto& [name, tensor] : state) {
    if (!name.ends_with("num_batches_tracked")) {
      plan.add_entry(name, tensor);
    }
  }
  for (const Shared& parameter : shared_parameters()) {
    LoadTarget target{{}, parameter.tensor().sizes()};
    for (const Member& member : parameter.members) {
      target.names.push_back(member.path);
    }
    plan.add_target(std::move(target), parameter.tensor());
  }
  for (const Buffer& buffer : buffers()) {
    plan.add_target({{buffer.path}, buffer.tensor->sizes(), is_floating(buffer.tensor->dtype())},
                    *buffer.tensor);
  }
  const std::vector<Tensor> sources = plan.match();
  const NoGradGuard guard;
  for (size_t i = 0; i < sources.size(); ++i) {
    set_value(plan.tensors[i], sources[i]);
  }
  return std::move(plan.report);
}

void Module::soft_update(const Module& source, double tau) {
  check(std::isfinite(tau) && tau >= 0 && tau <= 1, "soft_update: got tau = ", tau,
        ", expected a number in [0, 1]");
  const NamedTensors given = source.state(), own = state();
  std::vector<LoadTarget> targets;
  for (const auto& [name, tensor] : own) {
    targets.push_back({{name}, tensor.sizes(), is_floating(tensor.dtype())});
  }
  const std::vector<Tensor> sources = match_named("soft_update", targets, given);
  const NoGradGuard guard;
  for (size_t i = 0; i < own.size(); ++i) {
    const Tensor& value = own[i].second;
    if (!is_floating(value.dtype())) {
      value.copy_(sources[i]);
      continue;
    }
    const Tensor before = exact_value(value);
    const Tensor after = source.exact_value(sources[i]).to(before.device()).to(before.dtype());
    set_value(value, before + (after - before) * tau);
  }
}

// The first difference between the structures of two modules; empty if there is none.
std::string Module::differs_from(const Module& other) const {
  std::vector<std::string> mine, others;
  const auto list = [](const Module& top, std::vector<std::string>& lines) {
    top.walk("", [&](const std::string& at, const Module& module) {
      lines.push_back(
          text("module ", at.empty() ? "(root)" : at, " of class ", class_name(module)));
    });
    for (const Shared& parameter : top.shared_parameters()) {
      std::string line = text("parameter ", parameter.name(), " ", parameter.tensor().sizes());
      for (size_t i = 1; i < parameter.members.size(); ++i) {
        line += " tied to " + parameter.members[i].path;
      }
      lines.push_back(std::move(line));
    }
    for (const Buffer& buffer : top.buffers()) {
      lines.push_back(text("buffer ", buffer.path, " ", buffer.tensor->sizes()));
    }
    lines.emplace_back("nothing more");
  };
  list(*this, mine);
  list(other, others);
  for (size_t i = 0; i < std::min(mine.size(), others.size()); ++i) {
    if (mine[i] != others[i]) {
      return "got " + mine[i] + ", expected " + others[i];
    }
  }
  return {};
}

void copy_module(const Module& from, Module& to) {
  check(&from.root() != &to && !to.parent_, "clone: make() returned ",
        to.parent_ ? "a part of another module" : "the module itself", ", expected a new module");
  const std::string difference = to.differs_from(from);
  check(difference.empty(), "clone: make() returned another structure: ", difference);
  const NoGradGuard guard;
  to.leave_arena();
  std::vector<const Module*> sources;
  from.walk("", [&](const std::string&, const Module& module) { sources.push_back(&module); });
  size_t next = 0;
  std::map<const TensorData*, Tensor> moved;                           // a tied parameter stays one
  std::map<std::shared_ptr<const PrecisionRules>, Precision> renewed;  // histories of its own
  to.walk("", [&](const std::string&, Module& module) {
    const Module& source = *sources[next++];
    module.training_ = source.training_;
    module.allow_unregistered_ = source.allow_unregistered_;
    module.precision_ = source.precision_;
    if (source.precision_ && source.precision_->rules) {
      const auto [own, is_new] = renewed.try_emplace(source.precision_->rules, Precision::full());
      own->second = is_new ? with_new_histories(*source.precision_) : own->second;
      module.precision_->rules = own->second.rules;
    }
    module.wide_ = source.wide_;
    for (size_t i = 0; i < module.own_parameters_.size(); ++i) {
      Module::OwnParameter& own = *module.own_parameters_[i];
      const Tensor& value = *source.own_parameters_[i]->tensor;
      Tensor& copy = moved[own.tensor->handle().get()];
      if (!copy.defined()) {
        copy = copy_of(from.exact_value(value)).require_grad();
      }
      *own.tensor = copy;
      own.trainable = true;
      own.leaf = Tensor();
    }
    for (size_t i = 0; i < module.own_buffers_.size(); ++i) {
      *module.own_buffers_[i].second = copy_of(*source.own_buffers_[i].second);
    }
  });
  load_format_histories(to, format_histories(from));
  to.build_arena();
  for (const Module::Shared& parameter : from.shared_parameters()) {
    if (!parameter.members[0].own->trainable) {
      to.freeze(parameter.name());
    }
  }
}

// True if every parameter of this tree is also a parameter of the other tree (tied).
bool Module::is_held_by(const Module& other) const {
  std::set<const TensorData*> held;
  for (const Shared& parameter : other.shared_parameters()) {
    held.insert(parameter.tensor().handle().get());
  }
  const std::vector<Shared> own = shared_parameters();
  return std::all_of(own.begin(), own.end(), [&](const Shared& parameter) {
    return held.contains(parameter.tensor().handle().get());
  });
}

// Throws if a parameter was replaced after an optimizer was made: it would never be trained. Every
// value of the arena lies in the memory of a segment, even if its parameter is frozen.
void Module::check_not_replaced() const {
  const Module& top = root();
  if (!top.arena_ || !top.arena_->has_optimizer()) {
    return;
  }
  for (const auto& own : own_parameters_) {
    const TensorData* data = own->tensor->handle().get();
    bool held = data && own->tensor->numel() == 0;
    for (const Arena::Segment& segment : top.arena_->segments()) {
      const View& values = segment.values.handle()->view;
      const auto bytes = static_cast<size_t>(segment.numel) * size_of(segment.dtype);
      held |= data && data->view.data >= values.data && data->view.data < values.data + bytes;
    }
    check(
        held, "module: the parameter '", join_path(path(), own->name), "' of ", class_name(*this),
        " was replaced after an optimizer was made, which still trains the tensor before; expected "
        "the assignment before that, or copy_() or load_state(), which set the values");
  }
}

}  // namespace binade::nn
