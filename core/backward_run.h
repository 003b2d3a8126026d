// BackwardRun: one call of backward(). Internal to core.
//
// A heap of nodes by sequence number, newest first. All consumers of a node have larger numbers, so
// its slot is complete when it is popped; the order of execution and accumulation is reversed
// program order, hence deterministic. There is no prior traversal and nothing to reset.
#pragma once
#include <binade/core/autograd.h>

#include <memory>
#include <vector>

namespace binade {

class BackwardRun {
 public:
  explicit BackwardRun(const BackwardOptions& options)
      : options_(options),
        retain_(options.retain_graph || options.create_graph),
        grad_before_(std::exchange(detail::thread_state.grad_enabled, options.create_graph)),
        precision_before_(std::exchange(detail::thread_state.precision, nullptr)),
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
  void deliver_all(Node& node, Grads& gradients);
  void step();
  void finish(Leaf& leaf) {
    leaf.run = 0;
    if (leaf.on_final) {
      leaf.on_final(leaf.buffer);
    }
  }

  BackwardOptions options_;
  bool retain_;
  bool finished_ = false;
  bool grad_before_;
  const PrecisionScope* precision_before_;  // a gradient has the dtype of its value
  uint32_t id_ = 0;
  BackwardRun* outer_;
  Node* current_ = nullptr;
  std::vector<Entry> heap_;
  std::vector<Ref<Node>> touched_;  // leaves that received something
  std::vector<std::unique_ptr<Tensor>> kept_;
};

}  // namespace binade
