// BackwardRun: one call of backward(). Internal to core.
//
// Nodes wait in a heap, the newest sequence number first. All consumers of a node have larger
// numbers, so its slot is complete when it is popped. The order of execution and accumulation is
// reversed program order, hence deterministic. No traversal of the graph comes first, and nothing
// has to be reset.
#pragma once
#include <binade/core/autograd/autograd.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace binade {

// The targets of grad(): nodes whose gradients go to the caller and nowhere else.
struct GradTargets {
  // Finds the nodes from which an input can be reached. The search stops at the boundary.
  GradTargets(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
              std::span<const Tensor> boundary);
  bool leads(const Node& node) const { return leading.contains(&node); }

  std::unordered_map<const Node*, Tensor> gradients;  // by target, undefined until one arrives
  std::unordered_set<const Node*> leading;  // nodes that lead to a target, targets included
  std::unordered_set<const Node*> inner;    // nodes whose backward must run
};

class BackwardRun {
 public:
  explicit BackwardRun(const BackwardOptions& options, GradTargets* targets = nullptr)
      : options_(options),
        targets_(targets),
        retain_(options.retain_graph || options.create_graph),
        grad_before_(std::exchange(detail::thread_state.grad_enabled, options.create_graph)),
        precision_before_(std::exchange(detail::thread_state.precision, nullptr)),
        pruned_before_(std::exchange(detail::thread_state.pruned, targets != nullptr)),
        outer_(std::exchange(detail::thread_state.run, this)) {
    static std::atomic<uint32_t> next{1};
    id_ = next.fetch_add(1, std::memory_order_relaxed);
  }
  ~BackwardRun() {  // after an exception: leave no half-summed gradient behind
    for (Entry& entry : heap_) {
      entry.node->drop_gradient();
    }
    for (const Ref<Node>& node : touched_) {
      if (!finished_) {
        static_cast<Leaf&>(*node).clear();
      }
    }
    detail::thread_state.precision = precision_before_;
    detail::thread_state.pruned = pruned_before_;
    detail::thread_state.run = outer_;
    detail::thread_state.grad_enabled = grad_before_;
  }
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;

  void deliver(Edge& edge, Tensor gradient);
  void run();
  Node* current() const { return current_; }
  bool outermost() const { return outer_ == nullptr; }
  bool leads_to_input(const Node& node) const { return !targets_ || targets_->leads(node); }
  // Keeps a saved tensor with its history alive until the running node is done.
  const Tensor& keep(Tensor t) {
    return *kept_.emplace_back(std::make_unique<Tensor>(std::move(t)));
  }

 private:
  struct Entry {
    uint64_t sequence = 0;
    Edge node;
    bool operator<(const Entry& other) const { return sequence < other.sequence; }
  };

  void push(Edge& edge) {
    Entry& entry = heap_.emplace_back();
    entry.sequence = edge->sequence;
    edge->run = id_;
    if (retain_) {
      entry.node = Edge(edge.handle());
    } else {
      std::swap(entry.node, edge);
    }
    if (heap_.size() > 1) {
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  void deliver_to_leaf(Edge& edge, Tensor gradient);
  void deliver_all(Node& node, Grads& gradients);
  void step();
  void collect(const Node& node, const Tensor& gradient);
  bool arrive(Node& node, Tensor& dy);
  void finish(Leaf& leaf);

  BackwardOptions options_;
  GradTargets* targets_;  // null: gradients go to the leaves
  bool retain_;
  bool finished_ = false;
  bool grad_before_;
  const PrecisionScope* precision_before_;  // backward has no policy: gradients have values' dtypes
  uint32_t id_ = 0;
  bool pruned_before_;
  BackwardRun* outer_;
  Node* current_ = nullptr;
  std::vector<Entry> heap_;
  std::vector<Ref<Node>> touched_;  // leaves that received something
  std::vector<std::unique_ptr<Tensor>> kept_;
};

}  // namespace binade
