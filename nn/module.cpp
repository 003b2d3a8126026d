#include <binade/core/autograd/leaf_owner_internal.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/module.h>
#include <binade/nn/module_report_internal.h>
#include <binade/nn/module_walk_internal.h>

#include <algorithm>
#include <set>
#include <typeinfo>

namespace binade::nn {
namespace {

Leaf& leaf_of(const Tensor& tensor) { return static_cast<Leaf&>(*tensor.history()); }

// A frozen handle of the parameter.
Tensor frozen(const Tensor& parameter) {
  const uint8_t bits = detail::untracked_bits(parameter);
  detail::set_untracked_bits(parameter, bits | detail::kFrozen);
  return parameter.detach();
}

}  // namespace

// The owner of a leaf. A leaf may outlive its module, which calls leave() at its end.
class Module::Owner : public LeafOwner {
 public:
  explicit Owner(const Module& module) : module_(&module) {}
  void leave() { module_ = nullptr; }

 private:
  void used_in(const Leaf& leaf, const void* running) override {
    const Module* module = module_;
    const auto& outer = *static_cast<const Module*>(running);
    if (module && &module->root() != &outer.root() && !outer.root().holds(leaf)) {
      module->check_runs_in(outer);
    }
  }
  std::atomic<const Module*> module_;
};

Module::~Module() {
  for (const auto& own : own_parameters_) {
    static_cast<Owner&>(*own->owner).leave();
  }
  for (Module* child : children_) {  // may live longer
    child->parent_ = nullptr;
    child->name_.clear();
  }
  if (parent_) {
    std::vector<Module*>& siblings = parent_->children_;
    siblings.erase(std::find(siblings.begin(), siblings.end(), this));
  }
}

// registration ------------------------------------------------------------------------------------

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
  auto own = std::make_unique<OwnParameter>(OwnParameter{std::string(name), &parameter, traits});
  own->owner = std::make_shared<Owner>(*this);
  detail::set_owner(parameter, own->owner);
  own_parameters_.push_back(std::move(own));
}

void Module::register_buffer(std::string_view name, Tensor& buffer) {
  check_name(name);
  check(buffer.defined(), "register_buffer: '", name, "' is undefined");
  own_buffers_.emplace_back(name, &buffer);
}

void Module::register_module(std::string_view name, Module& child) {
  check_name(name);
  check(
      &child != &root(), "register_module: '", name,
      "' is the module itself or one that holds it, expected a module outside; a model holds each "
      "of its modules once, without a cycle");
  check(!child.parent_, "register_module: '", name,
        "' is part of a module already, expected a module without a parent; make another one, and "
        "tie its parameters by assignment if they shall be shared");
  child.leave_arena();
  child.name_ = name;
  child.parent_ = this;
  children_.push_back(&child);
}

// the tree ----------------------------------------------------------------------------------------

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

std::vector<std::string> Module::module_paths() const {
  std::vector<std::string> paths;
  walk("", [&](const std::string& path, const Module&) { paths.push_back(path); });
  return paths;
}

void Module::set_training_modes(const std::vector<bool>& modes) {
  check(modes.size() == training_modes().size(), "module: got ", modes.size(),
        " training modes, expected one per module");
  size_t next = 0;
  walk("", [&](const std::string&, Module& module) { module.training_ = modes[next++]; });
}

// running -----------------------------------------------------------------------------------------

// Adds the names of the modules between the outer one and this one that do not run, such as a List.
uint32_t Module::label_above(const void* outer, uint32_t label) const {
  return !parent_ || parent_ == outer || parent_->name_.empty()
             ? label
             : intern_label(parent_->label_above(outer, label), parent_->name_);
}

uint32_t Module::label(const void* outer) {
  const uint32_t parent = detail::thread_state.label;
  if (name_.empty()) {
    return parent;
  }
  const uint64_t cached = label_.load(std::memory_order_relaxed);
  if (cached && cached >> 32 == parent) {
    return static_cast<uint32_t>(cached);
  }
  const uint32_t own = intern_label(label_above(outer, parent), name_);
  label_.store(uint64_t{parent} << 32 | own, std::memory_order_relaxed);
  return own;
}

Tensor Module::operator()(const Tensor& x) {
  return scoped([&] {
    check(x.defined(), "module: got an undefined tensor, expected an input; assign it first");
    return forward(x);
  });
}

Tensor Module::forward(const Tensor& x) { return forward_one(x); }

Tensor Module::forward_one(const Tensor&) {
  throw Error(text("module: got one tensor for a ", class_name(*this),
                   ", whose forward() takes other inputs or returns no Tensor, or is missing; call "
                   "it by its own type, with the inputs that its forward() has, or override "
                   "forward(const Tensor&)"));
}

// A module whose root differs from the root of the module around it is not part of that module. The
// check runs once per root; modules without parameters are checked again, since their mode may
// differ only later.
void Module::check_runs_in(const Module& outer) const {
  const Module& top = root();
  if (&top == &outer.root() || top.judged_.load(std::memory_order_relaxed)) {
    return;
  }
  const detail::ThreadState& state_of_thread = detail::thread_state;
  if (state_of_thread.module_recorded && !state_of_thread.grad_enabled) {
    return;  // the outer module turned gradients off for it: a teacher
  }
  for (const Module* module = this; module; module = module->parent_) {
    if (module->allow_unregistered_) {
      return;
    }
  }
  bool state = false, trains = false, noise = false;
  std::vector<std::string> tensors;
  top.walk("", [&](const std::string& at, const Module& module) {
    for (const auto& own : module.own_parameters_) {
      trains |= own->trainable;
      tensors.push_back(join_path(at, own->name) + " " + to_string(own->tensor->sizes()));
    }
    state |= !module.own_parameters_.empty() || !module.own_buffers_.empty();
    noise |= module.depends_on_mode() && module.training_ && !outer.training_;
  });
  if (!state && !noise) {
    return;  // a function
  }
  const bool trained_elsewhere = top.arena_ && top.arena_->has_optimizer();
  if (top.judged_.exchange(true) || (state && (!trains || trained_elsewhere)) ||
      (state && top.is_held_by(outer.root()))) {
    return;
  }
  std::string what = class_name(top);
  for (size_t i = 0; i < tensors.size() && i < 2; ++i) {
    what += (i == 0 ? " (" : ", ") + tensors[i];
  }
  what += tensors.empty() ? "" : tensors.size() > 2 ? ", ...)" : ")";
  const std::string path = outer.path();
  warn(text("module: a ", what, " runs in the forward of ", class_name(outer),
            path.empty() ? "" : " (" + path + ")", " without being registered there: ",
            state ? "it is neither trained, saved nor moved with it"
                  : "it stays in training mode while that one evaluates",
            "; call register_module(name, member) in the constructor, or allow_unregistered() "
            "where this is meant"));
}

void Module::check_place() const {
  const auto* running = static_cast<const Module*>(detail::thread_state.module);
  if (running && running != this) [[unlikely]] {
    check_runs_in(*running);
  }
}

// True if a parameter of this tree is this leaf; other trees may share it.
bool Module::holds(const Leaf& leaf) const {
  bool any = false;
  walk("", [&](const std::string&, const Module& module) {
    for (const auto& own : module.own_parameters_) {
      any |= own->tensor->history().get() == &leaf;
    }
  });
  return any;
}

int64_t Module::synchronize_batch_norms(RankGroup* group) {
  int64_t count = 0;
  walk("", [&](const std::string&, Module& module) { count += module.synchronize(group); });
  return count;
}

void Module::add_path(Error& error) {
  const std::string where = label_text(detail::thread_state.label);
  if (!where.empty() && std::string_view(error.what()).find("(in module ") == std::string::npos) {
    error.add_context("(in module " + where + ")");
  }
}

// freezing ----------------------------------------------------------------------------------------

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
    set_trainable(parameter, trainable);
  }
  check(any, trainable ? "unfreeze" : "freeze", ": no parameter is named '", prefix,
        "' or lies below it");
}

void Module::set_trainable(const Shared& parameter, bool trainable) {
  for (const Member& member : parameter.members) {
    OwnParameter& own = *member.own;
    if (!trainable && own.tensor->requires_grad()) {
      own.tensor->zero_grad();  // a gradient that waits for a step would still be applied
      own.leaf = *own.tensor;
      leaf_of(own.leaf).frozen = true;  // and so would one that a recorded graph still brings
      *own.tensor = frozen(*own.tensor);
    } else if (trainable && own.leaf.defined()) {
      *own.tensor = std::exchange(own.leaf, Tensor());
      leaf_of(*own.tensor).frozen = false;
      detail::set_untracked_bits(*own.tensor, detail::kHasHistory);
    }
    own.trainable = trainable;
  }
}

// devices, dtypes and the arena -------------------------------------------------------------------

// True if every member still holds a parameter of the arena; false after a parameter was replaced
// or added.
bool Module::arena_is_current() const {
  if (!arena_) {
    return false;
  }
  std::set<const TensorData*> held;
  for (const Parameter& parameter : arena_->parameters()) {
    held.insert(parameter.value.handle().get());
  }
  const std::vector<Shared> shared = shared_parameters();
  return shared.size() == held.size() &&
         std::all_of(shared.begin(), shared.end(), [&](const Shared& parameter) {
           return held.contains(parameter.tensor().handle().get());
         });
}

// The arena's entry for this tensor; null if it is not a parameter of the arena.
const Parameter* Module::parameter_of(const Tensor& value) const {
  const Module& top = root();
  if (top.arena_) {
    for (const Parameter& parameter : top.arena_->parameters()) {
      if (parameter.value.handle().get() == value.handle().get()) {
        return &parameter;
      }
    }
  }
  return nullptr;
}

Tensor Module::master_of(const Tensor& value) const {
  const Parameter* parameter = parameter_of(value);
  if (!parameter) {
    return {};
  }
  const Arena::Segment& segment =
      root().arena_->segments()[static_cast<size_t>(parameter->segment)];
  return segment.masters.defined()
             ? make_range(segment.masters, value.sizes(), value.strides(), parameter->offset)
             : Tensor();
}

// Sets a parameter or buffer from a tensor of its shape; a master takes the value before rounding.
void Module::set_value(const Tensor& value, const Tensor& source) const {
  const Parameter* parameter = parameter_of(value);
  parameter ? root().arena_->set_value(*parameter, source) : value.copy_(source);
}

Tensor Module::exact_value(const Tensor& value) const {
  const Parameter* parameter = parameter_of(value);
  return parameter ? root().arena_->exact_value(*parameter) : value.detach();
}

// Leaves the arena; a parameter with a master takes the master's exact value.
void Module::leave_arena() {
  if (!arena_) {
    return;
  }
  check(!arena_->has_optimizer(),
        "module: an optimizer holds the parameters; convert, tie and compose modules before it");
  check(arena_->sharding() == Sharding::none,
        "module: the parameters are sharded; convert, tie and compose modules before that");
  arena_->follow_values();
  for (const Shared& parameter : shared_parameters()) {
    Tensor master = master_of(parameter.tensor());
    if (!master.defined()) {
      continue;
    }
    for (const Member& member : parameter.members) {
      Tensor leaf = master;
      leaf.require_grad();
      OwnParameter& own = *member.own;
      hand_over_gradients(*own.tensor, leaf);
      detail::set_owner(leaf, own.owner);
      *own.tensor = own.trainable ? leaf : master;
      own.leaf = own.trainable ? Tensor() : leaf;
    }
  }
  arena_->abandoned = true;
  arena_.reset();
}

// The dtype that to() asks for, else the parameter's own. `path` is this module's.
DType Module::wanted_dtype(const Shared& parameter, const std::string& path) const {
  if (!precision_) {
    return parameter.tensor().dtype();
  }
  const PrecisionRule* rule = precision_->rules ? precision_->rules->find_module(path) : nullptr;
  const bool stays =
      (precision_->masters() && parameter.traits().keep_f32) || (rule && rule->dtype == DType::f32);
  return precision_->low_weights() && !stays ? precision_->low : wide_;
}

void Module::build_arena() {
  leave_arena();
  std::map<const OwnParameter*, std::pair<const Module*, std::string>> owners;
  bool masters = false;
  walk("", [&](const std::string& at, const Module& module) {
    masters |= module.precision_ && module.precision_->masters();
    for (const auto& own : module.own_parameters_) {
      owners.emplace(own.get(), std::pair(&module, at));
    }
  });
  const std::vector<Shared> shared = shared_parameters();
  std::vector<ParameterSlot> slots;
  for (const Shared& parameter : shared) {
    const ParameterTraits& traits = parameter.traits();
    const auto& [owner, path] = owners.at(parameter.members[0].own);
    ParameterSlot slot{.name = parameter.name(),
                       .handles = {},
                       .norm_or_bias = traits.norm_or_bias,
                       .trainable = true,
                       .channels_last = traits.channels_last,
                       .dtype = owner->wanted_dtype(parameter, path)};
    for (const Member& member : parameter.members) {
      slot.handles.push_back(member.own->tensor);
    }
    slots.push_back(std::move(slot));
  }
  arena_ = Arena::build(slots, masters);
  for (const Shared& parameter : shared) {
    for (const Member& member : parameter.members) {
      OwnParameter& own = *member.own;
      detail::set_owner(*own.tensor, parameter.members[0].own->owner);
      own.leaf = own.trainable ? Tensor() : *own.tensor;
      if (!own.trainable) {
        *own.tensor = frozen(*own.tensor);
      }
    }
  }
}

ParameterList Module::parameters() {
  Module& top = root();
  if (!top.arena_is_current()) {
    top.build_arena();
  }
  std::map<const TensorData*, const Member*> mine;
  const std::vector<Shared> shared = shared_parameters();
  for (const Shared& parameter : shared) {
    mine.emplace(parameter.tensor().handle().get(), &parameter.members[0]);
  }
  std::vector<Parameter> list;
  for (const Parameter& parameter : top.arena_->parameters()) {
    const auto found = mine.find(parameter.value.handle().get());
    if (found != mine.end()) {
      const OwnParameter& own = *found->second->own;
      list.push_back(parameter);
      list.back().value = *own.tensor;  // a frozen one wants no gradient
      list.back().trainable = own.trainable;
    }
  }
  return {top.arena_, std::move(list)};
}

Device Module::device() const {
  for (const Shared& parameter : shared_parameters()) {
    return parameter.tensor().device();
  }
  for (const Buffer& buffer : buffers()) {
    return buffer.tensor->device();
  }
  return {};
}

void Module::to(Device device, const Precision& precision) {
  convert(device, DType::f32, precision);
}

void Module::to(Device device) { to(device, environment_precision()); }

void Module::to_full_precision() {
  Module& top = root();
  if (top.arena_) {
    top.arena_->widen();
  }
  top.walk("", [](const std::string&, Module& module) {
    module.precision_ = module.precision_ ? std::optional(Precision::full()) : std::nullopt;
  });
}

void Module::to_dtype(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::f64, "to: got ", dtype,
        ", expected f32 or f64; for f16 and bf16 choose a policy: to(device, "
        "Precision::mixed(DType::f16))");
  convert(device(), dtype, Precision::full());
}

void Module::convert(Device device, DType wide, const Precision& precision) {
  Module& top = root();
  if (precision.rules) {
    std::vector<std::string> paths;
    top.walk("", [&](const std::string& at, const Module&) { paths.push_back(at); });
    precision.rules->check_modules(paths);
  }
  check(!top.arena_ || !top.arena_->has_optimizer(),
        "to: got a model whose parameters an optimizer holds, expected none; move the model "
        "before making the optimizer");
  empty({0}, DType::f32, device);  // throws before anything is changed
  const NoGradGuard guard;
  const Precision own_precision = with_new_histories(precision);
  top.leave_arena();
  std::map<const TensorData*, Tensor> moved;  // a tied parameter stays one
  walk("", [&](const std::string&, Module& below) {
    below.precision_ = own_precision;
    below.wide_ = wide;
    for (const auto& own : below.own_parameters_) {
      Tensor& tensor = *own->tensor;
      if (!(tensor.device() == device)) {
        Tensor& there = moved[tensor.handle().get()];
        there = there.defined() ? there : tensor.to(device);
        if (tensor.requires_grad()) {
          hand_over_gradients(tensor, there.require_grad());
        }
        tensor = own->trainable ? there : there.detach();
      }
    }
    for (const auto& [name, buffer] : below.own_buffers_) {
      *buffer = is_floating(buffer->dtype()) ? buffer->to(device).to(wide) : buffer->to(device);
    }
  });
  top.build_arena();
}

std::string Module::describe() const { return ModuleReport(*this).describe(); }
std::string Module::explain_precision() const { return ModuleReport(*this).explain_precision(); }

}  // namespace binade::nn
