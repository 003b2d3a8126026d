// Ops with any number of inputs, saved tensors or outputs.
#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/leaf_owner_internal.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/graph_growth_internal.h>
#include <binade/core/observe/observer.h>
#include <binade/core/precision/simulated_formats.h>

#include <algorithm>

namespace binade {

namespace {

// An op with several outputs is one node, the Whole, with one Part per output. A part puts its
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

}  // namespace

namespace detail {

void record_many(const Op* op, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                 std::span<const Tensor> keep, ManyBackward backward) {
  if (!std::all_of(outputs.begin(), outputs.end(), [](auto& y) { return y.defined(); })) {
    refuse_result(*op);
  }
  if (thread_state.observers) [[unlikely]] {
    notify_results(*op, inputs, outputs);
  }
  const bool wanted =
      std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.requires_grad(); });
  uint8_t bits = wanted && grad_enabled() ? kHasHistory : 0;
  if (!bits) {
    for (const Tensor& input : inputs) {
      bits |= untracked_from(input, kUnderGuard);
    }
  }
  for (const Tensor& y : outputs) {
    set_untracked_bits(y, bits);
  }
  if (!wanted || !grad_enabled() || outputs.empty()) {
    return;
  }
  check(inputs.size() <= UINT16_MAX, op->name, ": got ", inputs.size(),
        " inputs, expected at most 65535");
  auto* whole = new (allocate(sizeof(Whole)))
      Whole(op, outputs[0], keep, outputs.size(), std::move(backward));
  const auto owner = Ref<Node>::adopt(whole);
  whole->bytes = sizeof(Whole);
  begin(*whole);
  whole->inputs.resize(inputs.size());
  whole->edges = whole->inputs.data();
  whole->edge_count = static_cast<uint16_t>(inputs.size());
  uint64_t sequence = thread_state.clock;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Ref<Node>& from = inputs[i].history()) {
      note_use(*from);
      whole->inputs[i] = Edge(from);
      sequence = std::max(sequence, from->sequence);
    }
  }
  whole->sequence = ++sequence;
  for (size_t k = 0; k < outputs.size(); ++k) {
    auto* part = new (allocate(sizeof(Part))) Part(op, outputs[k], owner, k);
    part->bytes = sizeof(Part);
    begin(*part);
    part->sequence = ++sequence;
    if (thread_state.precision) [[unlikely]] {
      simulate_gradient(*part, static_cast<int>(k));
    }
    outputs[k] = Tensor(std::move(outputs[k]), Ref<Node>::adopt(part));
  }
  thread_state.clock = sequence;
}

}  // namespace detail

}  // namespace binade
