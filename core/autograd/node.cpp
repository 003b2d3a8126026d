#include <binade/core/autograd/node.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/graph_growth_internal.h>
#include <binade/core/ops.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <utility>

namespace binade {

const char* Node::name() const { return op ? op->name : "leaf"; }

// Iterative, not recursive: a destructor that drops the last edge of a node only queues that node.
void Node::destroy(Node* node) noexcept {
  auto& state = detail::thread_state;
  node->next = std::exchange(state.doomed, node);
  if (std::exchange(state.draining, true)) {
    return;
  }
  while (Node* doomed = state.doomed) {
    state.doomed = doomed->next;
    const size_t bytes = doomed->bytes;
    state.live_nodes -= !doomed->leaf;
    if (doomed->hooked || doomed->traced) [[unlikely]] {
      detail::forget(*doomed);
    }
    doomed->~Node();
    binade::release(doomed, bytes);
  }
  state.draining = false;
}

Tensor Leaf::destination() const {
  const bool free = !has_grad && !frozen && buffer.defined() && !buffer.requires_grad();
  return free && !grad_enabled() && !detail::thread_state.pruned ? buffer : Tensor();
}

void Leaf::clear() {
  clear_gradient();
  scale = 1;
  device_scale = {};
  clipped_norm = clipped_value = false;
}

void Leaf::clear_gradient() {
  has_grad = false;
  if (buffer.requires_grad()) {  // recorded by create_graph: part of a graph, and perhaps shared
    buffer = {};
  }
}

// Other tensors may share a recorded gradient and ops may have saved it, so it is copied before a
// write.
void Leaf::own_buffer() {
  if (!buffer.defined() || !buffer.requires_grad()) {
    return;
  }
  Tensor own = has_grad ? empty_like(buffer) : Tensor();
  if (has_grad) {
    kernels::copy({.x = buffer, .y = own});
  }
  buffer = std::move(own);
}

void Leaf::accumulate(Tensor gradient) {
  if (frozen) {
    return;
  }
  check(!has_grad || buffer.defined(),
        "backward: got a gradient to add to one that was reduced into the shards of its ranks "
        "(ZeRO-2); step or zero_grad before the next backward, or reduce the last of an "
        "accumulation window only");
  const bool recorded = grad_enabled() && gradient.requires_grad();
  if (!recorded) {
    own_buffer();
  }
  if (gradient.handle().get() == buffer.handle().get()) {
    check(!has_grad, "backward: a gradient written in place met another one");
  } else if (recorded) {
    buffer = has_grad ? buffer + gradient : std::move(gradient);
  } else if (!buffer.defined() && gradient.sole_owner() &&
             is_dense(gradient.sizes(), gradient.strides())) {
    buffer = std::move(gradient);
  } else {
    if (!buffer.defined()) {
      buffer = empty(sizes, dtype, device);
    }
    if (has_grad) {
      kernels::add_into({.x = gradient, .y = buffer});
    } else {
      kernels::copy({.x = gradient, .y = buffer});
    }
  }
  has_grad = true;
  if (!recorded) {
    buffer.bump_version();  // grad() gives the buffer out: a saved copy is out of date now
  }
}

Tensor& Tensor::require_grad() {
  check(defined() && is_floating(dtype()), "require_grad: got ",
        defined() ? to_string(dtype()) : "an undefined tensor",
        ", expected a floating dtype; convert it with to(DType::f32)");
  check(!history_ || history_->leaf,
        "require_grad: got a tensor that an op computed; call detach() first");
  if (!history_) {
    auto* leaf = new (allocate(sizeof(Leaf))) Leaf(nullptr, *this);
    leaf->leaf = true;
    leaf->bytes = sizeof(Leaf);
    history_ = Ref<Node>::adopt(leaf);
    detail::set_untracked_bits(*this, detail::kHasHistory);
  }
  return *this;
}

Tensor Tensor::grad() const {
  check(defined(), "grad: got an undefined tensor, expected a leaf");
  const bool is_frozen = !history_ && handle()->storage->parent &&
                         (detail::untracked_bits(*this) & detail::kFrozen) != 0;
  if (is_frozen) {
    return {};
  }
  check(history_ && history_->leaf,
        "grad: got a tensor that is no leaf, expected a leaf, since only leaves keep a gradient; "
        "use on_gradient() for a look at it, or grad(loss, {x})");
  const auto& leaf = static_cast<const Leaf&>(*history_);
  if (!leaf.has_grad || !leaf.buffer.defined()) {
    return {};
  }
  const DType wide = compute_dtype(leaf.dtype);
  const bool on_device = leaf.device_scale.defined();
  if (leaf.scale == 1 && !on_device && leaf.dtype == wide) {
    return leaf.buffer;
  }
  NoGradGuard guard;
  Tensor value = empty_like(leaf.buffer, wide);
  if (on_device && is_dense(leaf.buffer.sizes(), leaf.buffer.strides())) {
    kernels::unscale_gradient(
        {.x = leaf.buffer, .y = value, .scale = leaf.scale, .tag = leaf.device_scale});
    return value;
  }
  kernels::copy({.x = leaf.buffer, .y = value});
  kernels::unary_forward(
      {.op = kernels::Unary::mul_scalar, .x = value, .y = value, .alpha = 1 / leaf.full_scale()});
  return value;
}

void Tensor::zero_grad() const {
  check(defined(), "zero_grad: got an undefined tensor, expected a leaf");
  check(history_ && history_->leaf, "zero_grad: got a tensor that is no leaf");
  static_cast<Leaf&>(*history_).clear();
}

}  // namespace binade
