// Where a module's tensors live: building the arena, moving and converting.
#include <binade/core/precision/precision_rules.h>
#include <binade/nn/module.h>
#include <binade/nn/module_walk_internal.h>

#include <algorithm>
#include <set>

namespace binade::nn {

// Whether every member still holds a parameter of the arena: false after one was replaced or added.
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

Tensor Module::master_of(const Tensor& value) const {
  const Module& top = root();
  if (top.arena_) {
    for (const Parameter& parameter : top.arena_->parameters()) {
      if (parameter.value.handle().get() == value.handle().get()) {
        const Arena::Segment& segment =
            top.arena_->segments()[static_cast<size_t>(parameter.segment)];
        return segment.masters.defined()
                   ? make_range(segment.masters, value.sizes(), value.strides(), parameter.offset)
                   : Tensor();
      }
    }
  }
  return {};
}

// Sets a parameter or buffer from a tensor of its shape; a master takes the value before rounding.
void Module::set_value(const Tensor& value, const Tensor& source) const {
  const Module& top = root();
  if (top.arena_) {
    for (const Parameter& parameter : top.arena_->parameters()) {
      const Tensor& masters =
          top.arena_->segments()[static_cast<size_t>(parameter.segment)].masters;
      if (masters.defined() && parameter.value.handle().get() == value.handle().get()) {
        const Tensor wide = source.to(value.device()).to(DType::f32);
        top.arena_->put(masters, parameter, wide);
        value.copy_(wide);
        return;
      }
    }
  }
  value.copy_(source);
}

// Gives up the arena; what had a master goes on with its exact value.
void Module::leave_arena() {
  if (!arena_) {
    return;
  }
  check(!arena_->has_optimizer(),
        "module: an optimizer holds the parameters; convert, tie and compose modules before it");
  check(arena_->sharding() == Sharding::none,
        "module: the parameters are sharded; convert, tie and compose modules before that");
  for (const Shared& parameter : shared_parameters()) {
    Tensor master = master_of(parameter.tensor());
    if (!master.defined()) {
      continue;
    }
    for (const Member& member : parameter.members) {
      Tensor leaf = master;
      leaf.require_grad();
      OwnParameter& own = *member.own;
      *own.tensor = own.trainable ? leaf : master;
      own.leaf = own.trainable ? Tensor() : leaf;
    }
  }
  arena_.reset();
}

// The dtype that to() asks for; else the one it has. `path` is this module's.
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
      own.leaf = own.trainable ? Tensor() : *own.tensor;
      if (!own.trainable) {
        *own.tensor = own.tensor->detach();
      }
    }
  }
}

ParameterList Module::parameters() {
  Module& top = root();
  if (!top.arena_is_current()) {
    top.build_arena();
  }
  std::map<const TensorData*, bool> mine;  // and whether it trains
  for (const Shared& parameter : shared_parameters()) {
    mine.emplace(parameter.tensor().handle().get(), parameter.members[0].own->trainable);
  }
  std::vector<Parameter> list;
  for (const Parameter& parameter : top.arena_->parameters()) {
    const auto found = mine.find(parameter.value.handle().get());
    if (found != mine.end()) {
      list.push_back(parameter);
      list.back().trainable = found->second;
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
  top.walk("", [](const std::string&, const Module& module) {
    auto& precision = const_cast<Module&>(module).precision_;
    precision = precision ? std::optional(Precision::full()) : precision;
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
        "to: an optimizer holds the parameters; move the model before making the optimizer");
  empty({0}, DType::f32, device);  // throws before anything is changed
  const NoGradGuard guard;
  top.leave_arena();
  walk("", [&](const std::string&, const Module& module) {
    auto& below = const_cast<Module&>(module);
    below.precision_ = precision;
    below.wide_ = wide;
    for (const auto& own : below.own_parameters_) {
      if (!(own->tensor->device() == device)) {
        *own->tensor = own->tensor->to(device);
      }
    }
    for (const auto& [name, buffer] : below.own_buffers_) {
      *buffer = is_floating(buffer->dtype()) ? buffer->to(device).to(wide) : buffer->to(device);
    }
  });
  top.build_arena();
}

}  // namespace binade::nn
