// The backward engine (core/autograd/backward_run_internal.h).
#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/backward_run_internal.h>
#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/leaf_owner_internal.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/graph_growth_internal.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/ops.h>
#include <binade/core/precision/format_calls_internal.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>

namespace binade {

namespace {

std::string where(const Node& node) {
  std::string out = std::string("(in backward of ") + node.name();
  if (node.label) {
    out += ", module " + label_text(node.label);
  }
  return out + ")";
}

// A gradient can be added to only if both have the same scale. Device scales that are different
// tensors are read and compared.
void check_scale(const Leaf& leaf, const BackwardOptions& options) {
  check(!leaf.clipped_norm && !leaf.clipped_value,
        "backward: got a gradient that is clipped already, expected to add to one that is not: "
        "clipping the parts of a sum does not clip the sum; clip after the last micro-batch, or "
        "step and zero_grad first");
  const Tensor& factor = options.device_scale;
  if (leaf.device_scale.handle().get() == factor.handle().get() && leaf.scale == options.scale) {
    return;
  }
  const double scale = factor.defined() ? options.scale * factor.item() : options.scale;
  const double held = leaf.full_scale();
  check(held == scale, "backward: got a loss scale of ", scale,
        ", but a gradient is held at scale ", held, "; step or zero_grad before the scale changes");
}

Grads call(Node& node, const Tensor& dy) {
  try {
    return node.backward(dy);
  } catch (Error& error) {
    error.add_context(where(node));
    throw;
  }
}

}  // namespace

void BackwardRun::finish(Leaf& leaf) {
  leaf.run = 0;
  if (leaf.hooked) [[unlikely]] {
    Tensor gradient = leaf.buffer;
    detail::run_hooks(leaf, gradient);
    // A hook that leaves no buffer has moved the gradient elsewhere
    // (dist/parallel/distributed_data_parallel.h).
    if (leaf.buffer.defined() && gradient.handle().get() != leaf.buffer.handle().get()) {
      if (gradient.handle()->storage.get() == leaf.buffer.handle()->storage.get()) {
        gradient = mul(gradient, 1);  // a view of its own of the memory that is written now
      }
      leaf.clear_gradient();
      leaf.accumulate(std::move(gradient));
    }
  }
  if (leaf.on_final) {
    leaf.on_final(leaf.buffer);
  }
}

void BackwardRun::collect(const Node& node, const Tensor& gradient) {
  if (const auto target = targets_->gradients.find(&node); target != targets_->gradients.end()) {
    Tensor& into = target->second;
    into = into.defined() ? add(into, gradient) : gradient;
  }
}

void BackwardRun::deliver_to_leaf(Edge& edge, Tensor gradient) {
  auto& leaf = static_cast<Leaf&>(*edge);
  if (leaf.run != id_) {
    if (leaf.has_grad) {
      check_scale(leaf, options_);
    }
    leaf.run = id_;
    touched_.push_back(edge.handle());
  }
  leaf.accumulate(std::move(gradient));
  leaf.scale = options_.scale;
  leaf.device_scale = options_.device_scale;
  if (detail::thread_state.observers) [[unlikely]] {
    detail::notify_upstream({leaf, options_, leaf.buffer, nullptr});
  }
}

void BackwardRun::deliver(Edge& edge, Tensor gradient) {
  Node& node = *edge;
  const View& values = gradient.view();
  if (values.dtype != node.dtype) [[unlikely]] {
    fail("backward: the gradient of ", node.name(), " has dtype ", values.dtype, ", expected ",
         node.dtype);
  }
  if (!(values.sizes == node.sizes)) [[unlikely]] {
    gradient =
        sum_to(gradient, node.sizes, node.leaf ? static_cast<Leaf&>(node).destination() : Tensor());
  }
  if (node.leaf) {
    targets_ ? collect(node, gradient) : deliver_to_leaf(edge, std::move(gradient));
    return;
  }
  Tensor& into = node.grad;
  if (!into.defined()) {
    if (node.released) [[unlikely]] {
      fail("backward: the graph of ", node.name(),
           " was freed by an earlier backward, expected one that exists; run the forward again, "
           "or pass {.retain_graph = true} to the first backward");
    }
    into = std::move(gradient);
    push(edge);
    return;
  }
  check(node.run == id_, "backward: ", node.name(),
        " is part of another backward that is still running");
  // Does not add into a broadcast view, where one element of memory stands for many.
  if (!grad_enabled() && into.sole_owner() && is_dense(into.sizes(), into.strides())) {
    kernels::add_into({.x = gradient, .y = into});
  } else {
    into = add(into, gradient);
  }
}

void BackwardRun::deliver_all(Node& node, Grads& gradients) {
  for (int i = 0; i < node.edge_count; ++i) {
    Edge& edge = node.edges[i];
    if (!edge) {
      continue;
    }
    if (targets_ && !targets_->leads(*edge)) {
      if (!retain_) {
        edge.drop();
      }
      continue;
    }
    if (node.part) {  // the whole runs once, even if several parts got a gradient
      if (edge->run != id_) {
        check(!edge->released, "backward: the graph of ", edge->name(),
              " was freed; pass retain_graph");
        push(edge);
      }
      continue;
    }
    Leaf* leaf = edge->leaf ? static_cast<Leaf*>(edge.get()) : nullptr;
    if (gradients[i].defined()) {
      deliver(edge, std::move(gradients[i]));
    }
    if (retain_ || !leaf) {
      continue;
    }
    const bool touched = leaf->run == id_;  // then `touched_` keeps it alive
    if (edge.drop() && touched) {
      finish(*leaf);
    }
  }
}

// True if the node's backward is wanted.
bool BackwardRun::arrive(Node& node, Tensor& dy) {
  if (node.hooked) {
    detail::run_hooks(node, dy);
  }
  if (!targets_) {
    return true;
  }
  collect(node, dy);
  return targets_->inner.contains(&node);
}

void BackwardRun::step() {
  if (heap_.size() > 1) {
    std::pop_heap(heap_.begin(), heap_.end());
  }
  Edge node = std::move(heap_.back().node);
  heap_.pop_back();
  current_ = node.get();
  Tensor dy = std::move(node->grad);
  if ((node->hooked || targets_) && !arrive(*node, dy)) [[unlikely]] {
    node->run = 0;
    return;
  }
  if (options_.create_graph && !node->part && !node->op->twice) [[unlikely]] {
    fail("backward: double backward of ", node->name(),
         " is not implemented, expected ops whose backward is made of ops; leave out "
         "create_graph, or write the formula with other ops");
  }
  try {
    if (detail::thread_state.observers) [[unlikely]] {
      detail::notify_upstream({*node, options_, dy, nullptr, &dy});
    }
    Grads gradients = [&] {
      const LabelScope scope(node->label);  // memory of a backward counts for the module, too
      return call(*node, dy);
    }();
    if (detail::thread_state.observers) [[unlikely]] {
      detail::notify_gradients({*node, options_, dy, &gradients});
    }
    dy = {};
    deliver_all(*node, gradients);
  } catch (...) {
    if (!retain_) {  // some edges may be gone: a second backward must be an error
      node->release();
    }
    throw;
  }
  kept_.clear();
  if (!retain_) {
    node->release();
  }
  node->run = 0;
}

void BackwardRun::run() {
  while (!heap_.empty()) {
    step();
  }
  finished_ = true;
  // Leaves that another graph shares, or that are retained, are final only now.
  for (const Ref<Node>& leaf : touched_) {
    if (leaf->run == id_) {
      finish(static_cast<Leaf&>(*leaf));
    }
  }
}

void backward(std::span<const Seed> seeds, const BackwardOptions& options) {
  for (const Seed& seed : seeds) {
    check(seed.root.defined(), "backward: got an undefined tensor, expected a result");
    if (!seed.root.requires_grad()) {
      fail("backward: got a tensor of shape ", seed.root.sizes(),
           ", but nothing in this tensor's history wants a gradient: ",
           detail::why_untracked(seed.root));
    }
    check(seed.gradient.defined(), "backward: got an undefined seed, expected a tensor of shape ",
          seed.root.sizes(), ", the gradient of the result");
    check(seed.gradient.sizes() == seed.root.sizes(), "backward: got a seed of shape ",
          seed.gradient.sizes(), ", expected ", seed.root.sizes(), ", the shape of the tensor");
  }
  const PhaseSpan phase("backward");
  FormatCalls::note_backward();
  BackwardRun run(options);
  for (const Seed& seed : seeds) {
    Edge edge(seed.root.history());
    run.deliver(edge, seed.gradient);
  }
  run.run();
  if (run.outermost()) {
    detail::sample_live_graph();
  }
}

void backward(const Tensor& root, const Tensor& seed, const BackwardOptions& options) {
  const Seed one{root, seed};
  backward(std::span(&one, 1), options);
}

void backward(const Tensor& root, const BackwardOptions& options) {
  if (!root.defined() || root.numel() != 1) [[unlikely]] {
    fail("backward: got shape ",
         root.defined() ? to_string(root.sizes()) : "of an undefined tensor",
         ", expected one element or an explicit upstream gradient; reduce it with mean() or sum()");
  }
  backward(root, full(root.sizes(), options.scale, root.dtype(), root.device()), options);
}

namespace detail {

std::string why_untracked(const Tensor& t) {
  if (!is_floating(t.dtype())) {
    return text("got dtype ", t.dtype(), ", expected a floating dtype; others have no gradient");
  }
  const uint8_t bits = untracked_bits(t);
  std::string why;
  const auto because = [&](bool holds, const char* reason) {
    why += holds ? (why.empty() ? "" : "; ") + std::string(reason) : "";
  };
  because(bits & kUnderGuard,
          "it was computed under a NoGradGuard (or from a result that was); end the guard before "
          "the forward pass");
  because(!grad_enabled() && !(bits & kUnderGuard),
          "a NoGradGuard is in force on this thread; end it before the forward pass");
  because(bits & kFrozen, "the parameters that it depends on are frozen; call unfreeze()");
  because(bits & kDetached || (bits & (kHasHistory | kFrozen)) == kHasHistory,
          "detach() cut it, or what it was computed from, off its history (as do handles copied "
          "before require_grad()); use the tensor itself");
  because(bits & kPlainOp,
          "an op without a gradient made it or what it was computed from (a comparison, a cast "
          "to an integer)");
  because(why.empty(),
          "nothing that it was computed from requires a gradient; call require_grad() on an input "
          "before the forward pass");
  return why;
}

void refuse_result(const Op& op) {
  fail(
      op.name,
      ": got an undefined result to record, expected a tensor that no other call of record() took");
}

void begin_node(Node& node, const Input* inputs, size_t count) {
  uint64_t sequence =
      thread_state.clock;  // newer than its inputs and than every node of this thread
  for (size_t i = 0; i < count; ++i) {
    if (const Ref<Node>& from = inputs[i].tensor.history()) {
      note_use(*from);
      new (&node.edges[i]) Edge(from);  // the edge is empty: there is nothing to drop
      sequence = std::max(sequence, from->sequence);
    }
  }
  node.sequence = thread_state.clock = sequence + 1;
  begin(node);
  if (thread_state.precision) [[unlikely]] {
    simulate_gradient(node);
  }
}

}  // namespace detail

}  // namespace binade
