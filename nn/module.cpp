#include <binade/nn/module.h>
#include <binade/nn/module_walk_internal.h>

namespace binade::nn {
namespace {

Leaf& leaf_of(const Tensor& tensor) { return static_cast<Leaf&>(*tensor.history()); }

}  // namespace

Module::~Module() = default;

// registration
// --------------------------------------------------------------------------------------

void Module::check_name(std::string_view name) const {
  check(!name.empty() && name.find('.') == std::string_view::npos, "register: got the name '", name,
        "', expected one that is not empty and has no dot");
  bool used = false;
  for (const auto& own : own_parameters_) {
    used |= own->name == name;
  }
  for (const auto& [own, tensor] : own_buffers_) {
    used |= own == name;
  }
  for (const Module* child : children_) {
    used |= child->name_ == name;
  }
  check(!used, "register: the name '", name, "' is used twice in one module");
  check(!root().arena_ || !root().arena_->has_optimizer(), "register: got '", name,
        "' after an optimizer was made; build the whole model first");
}

void Module::register_parameter(std::string_view name, Tensor& parameter, ParameterTraits traits) {
  check_name(name);
  check(parameter.defined() && is_floating(parameter.dtype()), "register_parameter: '", name,
        "' is ", parameter.defined() ? to_string(parameter.dtype()) : "undefined",
        ", expected a tensor of a floating dtype");
  check(!traits.channels_last || parameter.dim() >= 3, "register_parameter: '", name,
        "' has shape ", parameter.sizes(), ", expected [O, C, ...] for channels_last");
  parameter.require_grad();
  own_parameters_.push_back(
      std::make_unique<OwnParameter>(OwnParameter{std::string(name), &parameter, traits}));
}

void Module::register_buffer(std::string_view name, Tensor& buffer) {
  check_name(name);
  check(buffer.defined(), "register_buffer: '", name, "' is undefined");
  own_buffers_.emplace_back(name, &buffer);
}

void Module::register_module(std::string_view name, Module& child) {
  check_name(name);
  check(&child != this && !child.parent_, "register_module: '", name,
        "' is part of a module already");
  child.leave_arena();
  child.name_ = name;
  child.parent_ = this;
  children_.push_back(&child);
}

// the tree
// ------------------------------------------------------------------------------------------

const Module& Module::root() const { return parent_ ? parent_->root() : *this; }
Module& Module::root() { return parent_ ? parent_->root() : *this; }

std::string Module::path() const {
  return parent_ ? join_path(parent_->path(), name_) : std::string();
}

std::vector<Module::Shared> Module::shared_parameters(const std::string& path) const {
  std::vector<Shared> shared;
  std::map<const TensorData*, size_t> index;
  std::map<const Storage*, const std::string*> storages;
  walk(path, [&](const std::string& at, const Module& module) {
    for (const auto& own : module.own_parameters_) {
      const TensorData* data = own->tensor->handle().get();
      check(data, "parameter ", join_path(at, own->name), ": is undefined now");
      const auto [found, added] = index.emplace(data, shared.size());
      if (added) {
        shared.emplace_back();
      }
      shared[found->second].members.push_back({join_path(at, own->name), own.get()});
    }
  });
  for (const Shared& parameter : shared) {
    const auto [found, added] =
        storages.emplace(parameter.tensor().handle()->storage.get(), &parameter.name());
    check(added, "parameters ", *found->second, " and ", parameter.name(),
          ": are different views of the same memory; tie parameters by assigning the whole tensor");
  }
  return shared;
}

std::vector<Module::Buffer> Module::buffers() const {
  std::vector<Buffer> all;
  walk("", [&](const std::string& at, const Module& module) {
    for (const auto& [name, tensor] : module.own_buffers_) {
      all.push_back({join_path(at, name), tensor});
    }
  });
  return all;
}

NamedTensors Module::named_parameters() const {
  NamedTensors named;
  for (const Shared& parameter : shared_parameters()) {
    named.emplace_back(parameter.name(), parameter.tensor());
  }
  return named;
}

NamedTensors Module::named_buffers() const {
  NamedTensors named;
  for (const Buffer& buffer : buffers()) {
    named.emplace_back(buffer.path, *buffer.tensor);
  }
  return named;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Shared& parameter : shared_parameters()) {
    count += parameter.tensor().numel();
  }
  return count;
}

void Module::train(bool on) {
  training_ = on;
  for (Module* child : children_) {
    child->train(on);
  }
}

std::vector<bool> Module::training_modes() const {
  std::vector<bool> modes;
  walk("", [&](const std::string&, const Module& module) { modes.push_back(module.training_); });
  return modes;
}

void Module::set_training_modes(const std::vector<bool>& modes) {
  check(modes.size() == training_modes().size(), "module: got ", modes.size(),
        " training modes, expected one per module");
  size_t next = 0;
  walk("", [&](const std::string&, const Module& module) {
    const_cast<Module&>(module).training_ = modes[next++];
  });
}

// running
// -------------------------------------------------------------------------------------------

uint32_t Module::label() {
  const uint32_t parent = detail::thread_state.label;
  if (name_.empty()) {
    return parent;
  }
  const uint64_t cached = label_.load(std::memory_order_relaxed);
  if (cached && cached >> 32 == parent) {
    return static_cast<uint32_t>(cached);
  }
  const uint32_t own = intern_label(parent, name_);
  label_.store(uint64_t{parent} << 32 | own, std::memory_order_relaxed);
  return own;
}

Tensor Module::operator()(const Tensor& x) {
  return scoped([&] {
    check(x.defined(), "module: got an undefined tensor");
    return forward(x);
  });
}

void Module::add_path(Error& error) {
  const std::string where = label_text(detail::thread_state.label);
  if (!where.empty() && std::string_view(error.what()).find("(in module ") == std::string::npos) {
    error.add_context("(in module " + where + ")");
  }
}

// freezing
// ------------------------------------------------------------------------------------------

void Module::freeze(std::string_view prefix) { set_trainable(prefix, false); }
void Module::unfreeze(std::string_view prefix) { set_trainable(prefix, true); }

void Module::set_trainable(std::string_view prefix, bool trainable) {
  const std::string wanted = join_path(path(), std::string(prefix));
  bool any = false;
  for (const Shared& parameter : root().shared_parameters()) {
    bool matches = false;
    for (const Member& member : parameter.members) {
      matches |= wanted.empty() || member.path == wanted || member.path.starts_with(wanted + ".");
    }
    if (!matches) {
      continue;
    }
    any = true;
    for (const Member& member : parameter.members) {
      OwnParameter& own = *member.own;
      if (!trainable && own.tensor->requires_grad()) {
        own.tensor->zero_grad();  // a gradient that waits for a step would still be applied
        own.leaf = *own.tensor;
        leaf_of(own.leaf).frozen = true;  // and so would one that a recorded graph still brings
        *own.tensor = own.tensor->detach();
      } else if (trainable && own.leaf.defined()) {
        *own.tensor = std::exchange(own.leaf, Tensor());
        leaf_of(*own.tensor).frozen = false;
      }
      own.trainable = trainable;
    }
  }
  check(any, trainable ? "unfreeze" : "freeze", ": no parameter is named '", prefix,
        "' or lies below it");
}

}  // namespace binade::nn
