// The backward engine (core/backward_run.h) and ops with several outputs.
#include <binade/core/autograd.h>
#include <binade/core/backward_run.h>
#include <binade/core/create.h>
#include <binade/core/label.h>
#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/kernels/copy.h>

#include <algorithm>

namespace binade {

namespace {

// An op with several outputs is one node, the whole, with one Part per output. A part puts its
// gradient into the whole's list; the whole runs once, after all of its parts.
class Whole final : public Node {
 public:
  Whole(const Op* op, const Tensor& y, std::span<const Tensor> keep, size_t outputs,
        detail::ManyBackward backward)
      : Node(op, y), gradients(outputs), backward_(std::move(backward)) {
    for (const Tensor& t : keep) {
      saved_.push_back(t.defined() ? Saved(t) : Saved());
    }
  }
  ~Whole() override { Whole::release(); }
  Grads backward(const Tensor&) override {
    std::vector<Tensor> saved;
    for (const Saved& s : saved_) {
      saved.push_back(s.get(*this));
    }
    std::vector<Tensor> dys(gradients.size());
    dys.swap(gradients);
    return backward_(dys, Needs(edges, edge_count), saved);
  }
  void drop_gradient() noexcept override { gradients.assign(gradients.size(), Tensor()); }
  void release() noexcept override {
    if (std::exchange(released, true)) {
      return;
    }
    backward_ = nullptr;
    saved_.clear();
    for (Edge& edge : inputs) {
      edge.drop();
    }
  }

  std::vector<Edge> inputs;
  std::vector<Tensor> gradients;

 private:
  std::vector<Saved> saved_;
  detail::ManyBackward backward_;
};

class Part final : public Node {
 public:
  Part(const Op* op, const Tensor& y, const Ref<Node>& whole, size_t index)
      : Node(op, y), index_(index), whole_(whole) {
    part = true;
    edges = &whole_;
    edge_count = 1;
  }
  Grads backward(const Tensor& dy) override {
    static_cast<Whole&>(*whole_).gradients[index_] = dy;
    return {};
  }
  void release() noexcept override {
    if (!std::exchange(released, true)) {
      whole_.drop();
    }
  }

 private:
  size_t index_;
  Edge whole_;
};

std::string where(const Node& node) {
  std::string out = std::string("(in backward of ") + node.name();
  if (node.label) {
    out += ", module " + label_text(node.label);
  }
  return out + ")";
}

// Adding to a gradient needs one scale. Words that are not the same one are read and compared.
void check_scale(const Leaf& leaf, const BackwardOptions& options) {
  const Tensor& word = options.scale_word;
  if (leaf.scale_word.handle().get() == word.handle().get() && leaf.scale == options.scale) {
    return;
  }
  const double scale = word.defined() ? options.scale * word.item() : options.scale;
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
  leaf.scale_word = options_.scale_word;
}

void BackwardRun::deliver(Edge& edge, Tensor gradient) {
  Node& node = *edge;
  check(gradient.dtype() == node.dtype, "backward: the gradient of ", node.name(), " has dtype ",
        gradient.dtype(), ", expected ", node.dtype);
  if (!(gradient.sizes() == node.sizes)) [[unlikely]] {
    gradient =
        sum_to(gradient, node.sizes, node.leaf ? static_cast<Leaf&>(node).destination() : Tensor());
  }
  if (node.leaf) {
    deliver_to_leaf(edge, std::move(gradient));
    return;
  }
  Tensor& into = node.grad;
  if (!into.defined()) {
    check(!node.released, "backward: the graph of ", node.name(),
          " was freed by an earlier backward; pass retain_graph there");
    into = std::move(gradient);
    push(edge);
    return;
  }
  check(node.run == id_, "backward: ", node.name(),
        " is part of another backward that is still running");
  // Not into a broadcast view: one element may stand for many.
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
    if (node.part) {  // the whole runs once, however many of its parts got a gradient
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

void BackwardRun::step() {
  std::pop_heap(heap_.begin(), heap_.end());
  Edge node = std::move(heap_.back().node);
  heap_.pop_back();
  current_ = node.get();
  check(!options_.create_graph || node->part || node->op->twice, "backward: double backward of ",
        node->name(), " is not implemented");
  Tensor dy = std::move(node->grad);
  try {
    Grads gradients = call(*node, dy);
    dy = {};
    deliver_all(*node, gradients);
  } catch (...) {
    if (!retain_) {  // some edges may be gone: a second backward must not pass over them in silence
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
  // Leaves that a graph outside shares, or that are retained, are final only now.
  for (const Ref<Node>& leaf : touched_) {
    if (leaf->run == id_) {
      finish(static_cast<Leaf&>(*leaf));
    }
  }
}

void backward(std::span<const Seed> seeds, const BackwardOptions& options) {
  for (const Seed& seed : seeds) {
    check(seed.root.defined() && seed.root.requires_grad(),
          "backward: nothing in this tensor's history wants a gradient");
    check(seed.gradient.defined() && seed.gradient.sizes() == seed.root.sizes(),
          "backward: got a seed of shape ",
          seed.gradient.defined() ? seed.gradient.sizes() : Dims{}, ", expected ",
          seed.root.sizes(), ", the shape of the tensor");
  }
  BackwardRun run(options);
  for (const Seed& seed : seeds) {
    Edge edge(seed.root.history());
    run.deliver(edge, seed.gradient);
  }
  run.run();
}

void backward(const Tensor& root, const Tensor& seed, const BackwardOptions& options) {
  const Seed one{root, seed};
  backward(std::span(&one, 1), options);
}

void backward(const Tensor& root, const BackwardOptions& options) {
  check(root.defined() && root.numel() == 1, "backward: got shape ",
        root.defined() ? to_string(root.sizes()) : "of an undefined tensor",
        ", expected one element or an explicit upstream gradient");
  backward(root, full(root.sizes(), options.scale, root.dtype(), root.device()), options);
}

namespace detail {

void begin_node(Node& node, const Input* inputs, size_t count) {
  uint64_t sequence =
      thread_state.clock;  // newer than all this thread recorded and than its inputs
  for (size_t i = 0; i < count; ++i) {
    if (const Ref<Node>& from = inputs[i].tensor.history()) {
      node.edges[i] = Edge(from);
      sequence = std::max(sequence, from->sequence);
    }
  }
  node.sequence = thread_state.clock = sequence + 1;
}

void record_many(const Op* op, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                 std::span<const Tensor> keep, ManyBackward backward) {
  const bool wanted =
      std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.requires_grad(); });
  if (!wanted || !grad_enabled() || outputs.empty()) {
    return;
  }
  check(inputs.size() <= UINT16_MAX, op->name, ": got ", inputs.size(),
        " inputs, expected at most 65535");
  auto* whole = new (allocate(sizeof(Whole)))
      Whole(op, outputs[0], keep, outputs.size(), std::move(backward));
  const auto owner = Ref<Node>::adopt(whole);
  whole->bytes = sizeof(Whole);
  whole->inputs.resize(inputs.size());
  whole->edges = whole->inputs.data();
  whole->edge_count = static_cast<uint16_t>(inputs.size());
  uint64_t sequence = thread_state.clock;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Ref<Node>& from = inputs[i].history()) {
      whole->inputs[i] = Edge(from);
      sequence = std::max(sequence, from->sequence);
    }
  }
  whole->sequence = ++sequence;
  for (size_t k = 0; k < outputs.size(); ++k) {
    auto* part = new (allocate(sizeof(Part))) Part(op, outputs[k], owner, k);
    part->bytes = sizeof(Part);
    part->sequence = ++sequence;
    outputs[k] = Tensor(std::move(outputs[k]), Ref<Node>::adopt(part));
  }
  thread_state.clock = sequence;
}

}  // namespace detail

}  // namespace binade
