#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/leaf_owner_internal.h>
#include <binade/core/device/graph.h>
#include <binade/core/tensor/parameter.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace binade {
namespace {

struct Placement {
  size_t segment;
  int64_t offset;
};

Dims slot_strides(const ParameterSlot& slot, const Dims& sizes) {
  return slot.channels_last ? channels_last_strides(sizes) : row_major_strides(sizes);
}

// The device of the slots' tensors; all must be on one.
Device device_of(const std::vector<ParameterSlot>& slots) {
  Device device;
  for (size_t i = 0; i < slots.size(); ++i) {
    const ParameterSlot& slot = slots[i];
    check(!slot.handles.empty() && slot.handles[0]->defined(), "arena: parameter ", slot.name,
          " is undefined");
    const Device own = slot.handles[0]->device();
    check(i == 0 || own == device, "arena: parameter ", slot.name, " is on ", own, ", but ",
          slots[0].name, " is on ", device, "; move the whole model with to()");
    device = own;
  }
  return device;
}

// Creates the leaf of a parameter, whose gradient buffer is the arena range beside its value.
Tensor make_leaf(const Arena::Segment& segment, const ParameterSlot& slot, const Dims& sizes,
                 int64_t offset) {
  const Dims strides = slot_strides(slot, sizes);
  Tensor value = make_range(segment.values, sizes, strides, offset);
  if (slot.trainable) {
    value.require_grad();
    static_cast<Leaf&>(*value.history()).buffer =
        make_range(segment.gradients, sizes, strides, offset);
  }
  return value;
}

// Adds the gradient of one leaf to that of another, and forgets it there.
void move_gradient(Leaf& from, Leaf& to) {
  if (!from.has_grad || !from.buffer.defined() || to.frozen) {
    from.clear();
    return;
  }
  const bool moves = !(from.device == to.device);  // a device scale stays on its device
  check(!to.has_grad || to.full_scale() == from.full_scale(), "backward: got a loss scale of ",
        from.full_scale(), ", but the parameter holds a gradient at scale ", to.full_scale(),
        "; step or zero_grad before the scale changes");
  to.scale = moves ? from.full_scale() : from.scale;
  to.device_scale = moves ? Tensor() : from.device_scale;
  to.clipped_norm |= from.clipped_norm;
  to.clipped_value |= from.clipped_value;
  to.accumulate(from.buffer.to(to.device).to(to.dtype));
  from.clear();
  if (to.on_final) {
    to.on_final(to.buffer);
  }
}

// The owner of variables that are in a list of their own, for as long as someone holds its arena.
class ListOwner : public LeafOwner {
 public:
  explicit ListOwner(const std::shared_ptr<Arena>& arena) : arena_(arena) {}
  bool is_over() const { return arena_.expired(); }

 private:
  void used_in(const Leaf& /*leaf*/, const void* /*module*/) override {}

  std::weak_ptr<Arena> arena_;
};

// True if the leaf belongs to no module, and to no list that is in use.
bool is_free(const Leaf& leaf) {
  const auto* list = dynamic_cast<const ListOwner*>(leaf.owner.get());
  return !leaf.owned || (list && list->is_over());
}

}  // namespace

void hand_over_gradients(const Tensor& from, const Tensor& to) {
  if (!from.requires_grad() || !to.requires_grad() || from.history().get() == to.history().get()) {
    return;
  }
  auto& before = static_cast<Leaf&>(*from.history());
  const Ref<Node>& after = to.history();
  move_gradient(before, static_cast<Leaf&>(*after));
  detail::copy_hooks(before, *after);
  before.on_final = [&before, after](const Tensor&) {
    move_gradient(before, static_cast<Leaf&>(*after));
  };
}

Leaf& Parameter::leaf() const {
  check(value.requires_grad(), "parameter ", name, ": is frozen and has no gradient");
  return static_cast<Leaf&>(*value.history());
}

ParameterList ParameterList::with_leaves() const {
  ParameterList list = *this;
  for (Parameter& parameter : list.parameters_) {
    parameter.value = arena_->parameters()[parameter.index].value;
  }
  return list;
}

int64_t ParameterList::numel() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    count += parameter.numel();
  }
  return count;
}

ParameterList ParameterList::of_handles(const std::vector<Tensor*>& handles) {
  std::vector<ParameterSlot> slots;
  for (size_t i = 0; i < handles.size(); ++i) {
    Tensor& variable = *handles[i];
    const auto described = [&] { return text("ParameterList::of: variable ", i); };
    check(variable.defined() && is_floating(variable.dtype()), described(), " is ",
          variable.defined() ? to_string(variable.dtype()) : "undefined",
          ", expected a tensor of a floating dtype");
    check(!variable.history() || variable.history()->leaf, described(),
          " is computed by an op, expected a leaf; call detach() first");
    check(!variable.history() || is_free(static_cast<const Leaf&>(*variable.history())),
          described(),
          " is a parameter of a module, or of another list that is in use; take those "
          "parameters");
    for (size_t j = 0; j < i; ++j) {
      check(handles[j]->handle().get() != variable.handle().get(), described(), " is variable ", j,
            " again, expected different ones");
    }
    slots.push_back({.name = text(i), .handles = {&variable}, .dtype = variable.dtype()});
  }
  for (const ParameterSlot& slot : slots) {
    slot.handles[0]->require_grad();
  }
  std::shared_ptr<Arena> arena = Arena::build(slots, false);
  const auto owner = std::make_shared<ListOwner>(arena);
  for (const ParameterSlot& slot : slots) {
    detail::set_owner(*slot.handles[0], owner);
  }
  std::vector<Parameter> parameters = arena->parameters();
  return {std::move(arena), std::move(parameters)};
}

ParameterList ParameterList::of(std::span<Tensor> variables) {
  std::vector<Tensor*> handles;
  for (Tensor& variable : variables) {
    handles.push_back(&variable);
  }
  return of_handles(handles);
}

std::shared_ptr<Arena> Arena::build(const std::vector<ParameterSlot>& slots, bool masters) {
  NoGradGuard guard;
  auto arena = std::make_shared<Arena>();
  std::vector<Placement> placements;
  const Device device = device_of(slots);
  for (const ParameterSlot& slot : slots) {
    check(is_floating(slot.dtype), "arena: parameter ", slot.name, " has dtype ", slot.dtype,
          ", expected a floating one");
    size_t index = 0;
    while (index < arena->segments_.size() && arena->segments_[index].dtype != slot.dtype) {
      ++index;
    }
    if (index == arena->segments_.size()) {
      arena->segments_.push_back({slot.dtype, 0, {}, {}, {}});
    }
    Segment& segment = arena->segments_[index];
    placements.push_back({index, segment.numel});
    segment.numel += (slot.handles[0]->numel() + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (Segment& segment : arena->segments_) {
    segment.own_end = segment.numel;
    for (Tensor* tensor : {&segment.values, &segment.gradients}) {
      *tensor = empty({segment.numel}, segment.dtype, device);
      tensor->fill_(0);
    }
    if (masters && is_half(segment.dtype)) {
      segment.masters = empty({segment.numel}, DType::f32, device);
      segment.masters.fill_(0);
    }
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const ParameterSlot& slot = slots[i];
    const Segment& segment = arena->segments_[placements[i].segment];
    const Tensor source = slot.handles[0]->detach();
    const Dims sizes = source.sizes();
    Tensor value = make_leaf(segment, slot, sizes, placements[i].offset);
    kernels::copy({.x = source, .y = value});
    if (segment.masters.defined()) {
      kernels::copy({.x = source,
                     .y = make_view(segment.masters, sizes, slot_strides(slot, sizes),
                                    placements[i].offset)});
      static_cast<Leaf&>(*value.history()).has_master = true;
    }
    for (Tensor* handle : slot.handles) {
      hand_over_gradients(*handle, value);
      *handle = value;
    }
    arena->parameters_.push_back({slot.name, value, static_cast<int>(placements[i].segment),
                                  placements[i].offset, slot.norm_or_bias, slot.trainable, i});
    arena->agreed_.push_back(value.version());
  }
  return arena;
}

std::vector<Tensor> Arena::make_state() const {
  std::vector<Tensor> state;
  for (const Segment& segment : segments_) {
    state.push_back(empty({segment.own_numel()}, segment.state_dtype(), segment.values.device()));
    state.back().fill_(0);
  }
  return state;
}

const Tensor& Arena::masters_of(const Parameter& parameter) const {
  return segments_[static_cast<size_t>(parameter.segment)].masters;
}

void Arena::set_value(const Parameter& parameter, const Tensor& source) const {
  const NoGradGuard guard;
  const Tensor& masters = masters_of(parameter);
  if (!masters.defined()) {
    parameter.value.copy_(source);
    return;
  }
  const Tensor wide = source.to(device()).to(masters.dtype());
  put(masters, parameter, wide);
  parameter.value.copy_(wide);
  note_agreement(parameter);
}

Tensor Arena::exact_value(const Parameter& parameter) const {
  const Tensor& masters = masters_of(parameter);
  if (!masters.defined()) {
    return parameter.value.detach();
  }
  check(sharding_ == Sharding::none, "parameter ", parameter.name,
        ": its master is spread over ranks, expected a whole one; do this before shard()");
  follow_value(parameter);
  return make_view(masters, parameter.value.sizes(), parameter.value.strides(), parameter.offset);
}

void Arena::note_agreement(const Parameter& parameter) const {
  agreed_[parameter.index] = parameter.value.version();
}

void Arena::follow_value(const Parameter& parameter) const {
  const Tensor& masters = masters_of(parameter);
  if (!masters.defined()) {
    return;
  }
  if (agreed_[parameter.index] == parameter.value.version()) {
    if (parameter.value.handle()->storage->exposed.load(std::memory_order_relaxed)) {
      follow_pointer(parameter);
    }
    return;
  }
  check(!is_capturing(device()), "step: got parameter ", parameter.name,
        ", which was changed in place beside its f32 master, while a graph is captured, expected "
        "a master that agrees; take one step before the capture");
  put(masters, parameter, parameter.value.detach());
  note_agreement(parameter);
}

// The program may write through a raw pointer at any time, so each call compares. If an element
// still equals its rounded master, it was not written, and the master keeps all its digits.
void Arena::follow_pointer(const Parameter& parameter) const {
  const Segment& segment = segments_[static_cast<size_t>(parameter.segment)];
  const int64_t begin = std::max(parameter.offset, segment.own_begin),
                end = std::min(parameter.offset + parameter.numel(), segment.own_end);
  if (begin >= end) {
    return;
  }
  const NoGradGuard guard;
  const int64_t n = end - begin;
  const Tensor value = make_view(segment.values, {n}, {1}, begin),
               master = make_view(segment.masters, {n}, {1}, begin - segment.own_begin);
  const Tensor rounded = empty({n}, segment.dtype);
  kernels::copy({.x = master, .y = rounded});
  const auto *now = value.view().as<uint16_t>(), *before = rounded.view().as<uint16_t>();
  if (std::memcmp(now, before, static_cast<size_t>(n) * sizeof *now) == 0) {
    return;
  }
  const Tensor wide = empty({n}, master.dtype());
  kernels::copy({.x = value, .y = wide});
  for (int64_t i = 0; i < n; ++i) {
    if (now[i] != before[i]) {
      master.view().as<float>()[i] = wide.view().as<float>()[i];
    }
  }
}

namespace {
thread_local FollowedArenas* followed = nullptr;
}  // namespace

FollowedArenas::FollowedArenas() : outer_(std::exchange(followed, this)) {}
FollowedArenas::~FollowedArenas() { followed = outer_; }

void Arena::follow_values() const {
  const bool masters = std::any_of(segments_.begin(), segments_.end(),
                                   [](const Segment& s) { return s.masters.defined(); });
  if (!masters) {
    return;
  }
  if (followed) {
    followed->arenas_.push_back(weak_from_this());
  }
  for (const Parameter& parameter : parameters_) {
    follow_value(parameter);
  }
}

void Arena::widen() {
  const NoGradGuard guard;
  follow_values();
  std::vector<Segment> wide = segments_;
  for (Segment& segment : wide) {
    if (is_half(segment.dtype)) {
      segment.dtype = DType::f32;
      segment.gradients = empty(segment.gradients.sizes(), DType::f32, segment.values.device());
      segment.gradients.fill_(0);
      const auto index = static_cast<int>(&segment - wide.data());
      segment.values =
          segment.masters.defined() ? whole(segment.masters, index) : segment.values.to(DType::f32);
      segment.masters = {};
    }
  }
  std::vector<Tensor> values, gradients;  // of each parameter; created first because it can fail
  for (const Parameter& parameter : parameters_) {
    const Segment& segment = wide[static_cast<size_t>(parameter.segment)];
    const Dims &sizes = parameter.value.sizes(), &strides = parameter.value.strides();
    values.push_back(make_range(segment.values, sizes, strides, parameter.offset));
    gradients.push_back(sharding_ == Sharding::gradients
                            ? Tensor()
                            : make_range(segment.gradients, sizes, strides, parameter.offset));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& value = parameters_[i].value;
    if (!is_half(value.dtype())) {
      continue;
    }
    // Graphs recorded before must see that the parameter has changed.
    values[i].handle()->storage->version.store(value.version() + 1, std::memory_order_relaxed);
    detail::replace_storage(value, values[i]);
    if (value.requires_grad()) {
      auto& leaf = static_cast<Leaf&>(*value.history());
      leaf.clear();
      leaf.dtype = DType::f32;
      leaf.has_master = false;
      leaf.buffer = gradients[i];
    }
  }
  segments_ = std::move(wide);
}

void Arena::clear_gradients() const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.trainable) {
      parameter.value.zero_grad();
    }
  }
}

}  // namespace binade
