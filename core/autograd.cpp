// The backward engine: a heap of nodes by sequence number, newest first. All consumers of a node
// have larger numbers, so its slot is complete when it is popped; the order of execution and
// accumulation is reversed program order, hence deterministic. There is no prior traversal and
// nothing to reset.
#include <binade/core/autograd.h>
#include <binade/core/create.h>
#include <binade/core/label.h>
#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/kernels/copy.h>

#include <algorithm>
#include <memory>

namespace binade {

class BackwardRun {
 public:
  explicit BackwardRun(const BackwardOptions& options)
      : options_(options),
        retain_(options.retain_graph || options.create_graph),
        grad_before_(std::exchange(detail::thread_state.grad_enabled, options.create_graph)),
        outer_(std::exchange(detail::thread_state.run, this)) {
    static std::atomic<uint32_t> next{1};
    id_ = next.fetch_add(1, std::memory_order_relaxed);
  }
  ~BackwardRun() {  // after an exception: leave no half-summed gradient behind
    for (Entry& entry : heap_) {
      entry.node->drop_gradient();
    }
    detail::thread_state.run = outer_;
    detail::thread_state.grad_enabled = grad_before_;
  }
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;

  void deliver(Edge& edge, Tensor gradient);
  void run();
  Node* current() const { return current_; }
  // Keeps a saved tensor with its history alive until the running node is done.
  const Tensor& keep(Tensor t) {
    return *kept_.emplace_back(std::make_unique<Tensor>(std::move(t)));
  }

 private:
  struct Entry {
    uint64_t sequence;
    Edge node;
    bool operator<(const Entry& other) const { return sequence < other.sequence; }
  };

  void push(Edge& edge) {
    edge->run = id_;
    heap_.push_back({edge->sequence, retain_ ? Edge(edge.handle()) : std::move(edge)});
    std::push_heap(heap_.begin(), heap_.end());
  }
  void deliver_to_leaf(Edge& edge, Tensor gradient);
  void step();
  void finish(Leaf& leaf) {
    leaf.run = 0;
    if (leaf.on_final) {
      leaf.on_final(leaf.buffer);
    }
  }

  BackwardOptions options_;
  bool retain_;
  bool grad_before_;
  uint32_t id_ = 0;
  BackwardRun* outer_;
  Node* current_ = nullptr;
  std::vector<Entry> heap_;
  std::vector<Ref<Node>> touched_;  // leaves that received something
  std::vector<std::unique_ptr<Tensor>> kept_;
};

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
    check(!leaf.has_grad || leaf.scale == options_.scale, "backward: got a loss scale of ",
          options_.scale, ", but a gradient is held at scale ", leaf.scale,
          "; step or zero_grad before the scale changes");
    leaf.run = id_;
    touched_.push_back(edge.handle());
  }
  leaf.accumulate(std::move(gradient));
  leaf.scale = options_.scale;
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
  if (!grad_enabled() && into.sole_owner()) {
    kernels::add_into({.x = gradient, .y = into});
  } else {
    into = add(into, gradient);
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
  Grads gradients = call(*node, dy);
  dy = {};
  for (int i = 0; i < node->edge_count; ++i) {
    Edge& edge = node->edges[i];
    if (!edge) {
      continue;
    }
    if (node->part) {  // the whole runs once, however many of its parts got a gradient
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
  for (const Ref<Node>& leaf :
       touched_) {  // shared with a graph outside, or retained: final only now
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

// saved tensors
// -------------------------------------------------------------------------------------

namespace {
std::atomic<int64_t> live_saved_bytes{0}, peak_saved_bytes{0};
}

Saved::Saved(const Tensor& t)
    : data_(t.detach()), history_(t.history().get()), version_(t.version()) {
  counted_ = !(history_ && history_->leaf);  // parameters are held anyway
  Storage& storage = *data_.handle()->storage;
  if (counted_ && storage.saves.fetch_add(1, std::memory_order_relaxed) == 0) {
    const auto bytes = static_cast<int64_t>(storage.bytes);
    const int64_t live = live_saved_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_saved_bytes.load(std::memory_order_relaxed);
    while (live > peak &&
           !peak_saved_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
}

Saved::~Saved() {
  if (counted_) {
    Storage& storage = *data_.handle()->storage;
    if (storage.saves.fetch_sub(1, std::memory_order_relaxed) == 1) {
      live_saved_bytes.fetch_sub(static_cast<int64_t>(storage.bytes), std::memory_order_relaxed);
    }
  }
}

Saved& Saved::operator=(Saved&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(history_, other.history_);
  std::swap(version_, other.version_);
  std::swap(counted_, other.counted_);
  return *this;
}

const Tensor& Saved::get(const Node& node) const {
  if (!data_.defined()) {
    return data_;  // absent, or not wanted by any gradient
  }
  check(data_.version() == version_, node.name(),
        ": a tensor saved for backward was changed in place (version ", data_.version(),
        ", expected ", version_, "); change it after backward, or use a functional op");
  BackwardRun* run = detail::thread_state.run;
  if (!grad_enabled() || !run) {
    return data_;
  }
  // The backward itself is being recorded: give the value its history again.
  if (!history_) {
    return node.output == data_.handle().get()
               ? run->keep(Tensor(data_.handle(), Ref<Node>::share(const_cast<Node*>(&node))))
               : data_;
  }
  for (int i = 0; i < node.edge_count; ++i) {
    if (node.edges[i].get() == history_) {
      return run->keep(Tensor(data_.handle(), node.edges[i].handle()));
    }
  }
  fail(node.name(), ": a saved tensor that has a history must be an input of the op");
}

SavedBytes saved_bytes() { return {live_saved_bytes.load(), peak_saved_bytes.load()}; }
void reset_peak_saved_bytes() { peak_saved_bytes.store(live_saved_bytes.load()); }

// needs
// ---------------------------------------------------------------------------------------------

Tensor Needs::direct(int i) const {
  const Node& to = *edges_[i];
  if (!to.leaf) {
    return {};
  }
  for (int k = 0; k < count_; ++k) {
    if (k != i && edges_[k].get() == &to) {
      return {};  // the same leaf twice in one op: both cannot write the one range
    }
  }
  return static_cast<const Leaf&>(to).destination();
}

Tensor Needs::out(int i) const {
  return edges_[i] ? out_strided(i, row_major_strides(edges_[i]->sizes)) : Tensor();
}

Tensor Needs::out_strided(int i, const Dims& strides) const {
  if (!edges_[i]) {
    return {};
  }
  Tensor place = direct(i);
  if (place.defined()) {
    return place;
  }
  const Node& to = *edges_[i];
  return strides.size() == to.sizes.size() && is_dense(to.sizes, strides)
             ? empty_strided(to.sizes, strides, to.dtype, to.device)
             : empty(to.sizes, to.dtype, to.device);
}

}  // namespace binade
