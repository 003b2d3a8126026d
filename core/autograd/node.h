// Node: the identity of one differentiable value in the graph. Edge: a recorded use of it. Leaf: a
// value that collects its gradient, such as a parameter.
//
// All arrows go back in time: handle -> node, node -> edges (upstream), closure -> saved data. A
// node whose counts reach zero goes on a thread-local list that only the outermost release empties,
// so a graph of any depth is freed without recursion.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <memory>
#include <vector>

namespace binade {

struct Op;
class Edge;
class LeafOwner;

// The gradients that a backward returns: one per input, undefined if it is not wanted.
class Grads {
 public:
  static constexpr int kInline = 4;

  Grads() = default;
  template <class... T>
  requires(sizeof...(T) <= kInline && (std::is_convertible_v<T&&, Tensor> && ...))
      Grads(T&&... gradients)
      : few_{Tensor(std::forward<T>(gradients))...} {}  // NOLINT
  explicit Grads(std::vector<Tensor> gradients)
      : many_(gradients.empty() ? nullptr
                                : std::make_unique<std::vector<Tensor>>(std::move(gradients))) {}

  Tensor& operator[](int i) { return many_ ? (*many_)[static_cast<size_t>(i)] : few_[i]; }

 private:
  Tensor few_[kInline];
  std::unique_ptr<std::vector<Tensor>> many_;  // a pointer, because few ops need it
};

class Node {
 public:
  Node(const Op* op, const Tensor& y)
      : label(detail::thread_state.label),
        dtype(y.dtype()),
        device(y.device()),
        op(op),
        output(y.handle().get()),
        sizes(y.sizes()) {}
  virtual ~Node() = default;
  virtual Grads backward(const Tensor& dy) = 0;
  virtual void release() noexcept = 0;  // drops the closure and the edges
  virtual void drop_gradient() noexcept { grad = {}; }
  static void destroy(Node* node) noexcept;
  const char* name() const;

  std::atomic<uint64_t> refs{1};  // low half: handles, high half: edges
  uint32_t label;                 // module path (core/observe/label.h)
  uint32_t run = 0;               // id of the backward that filled `grad`
  uint16_t bytes = 0;             // of this allocation
  uint16_t edge_count = 0;
  DType dtype;
  Device device;
  bool leaf = false, released = false, part = false;
  bool hooked = false,
       traced = false;    // known to core/autograd/hooks.cpp, core/observe/graph_growth.cpp
  bool owned = false;     // a leaf with an owner
  uint64_t sequence = 0;  // newer than all inputs: the order of backward is reversed program order
  const Op* op;           // null for leaves
  Tensor grad;            // slot: the gradient collected so far in this backward
  Edge* edges = nullptr;  // edge_count edges, stored in the subclass
  const TensorData* output;  // compared, never followed
  Node* next = nullptr;      // list of nodes that wait for destruction
  Dims sizes;                // a gradient of other sizes is summed down to these
};

class Edge {
 public:
  static constexpr uint64_t kOne = uint64_t(1) << 32;

  Edge() = default;
  explicit Edge(const Ref<Node>& to) : to_(to.get()) { detail::count_up(to_->refs, kOne); }
  Edge(Edge&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
  Edge& operator=(Edge&& other) noexcept {
    std::swap(to_, other.to_);
    return *this;
  }
  ~Edge() { drop(); }

  // Returns true if this was the last edge: no recorded op uses the value any more.
  bool drop() noexcept {
    Node* node = std::exchange(to_, nullptr);
    if (!node) {
      return false;
    }
    uint64_t before = node->refs.load(std::memory_order_acquire);
    if (before != kOne) {
      before = detail::count_down(node->refs, kOne);
    }
    if (before == kOne) {
      Node::destroy(node);
    }
    return before >> 32 == 1;
  }
  Node* get() const { return to_; }
  Node* operator->() const { return to_; }
  Node& operator*() const { return *to_; }
  explicit operator bool() const { return to_ != nullptr; }
  Ref<Node> handle() const { return Ref<Node>::share(to_); }

 private:
  Node* to_ = nullptr;
};

// A value that collects its gradient. The gradient has the value's dtype and may carry a scale
// (optim/loss_scaler.h): `buffer` holds scale times the true gradient, and unscaling changes the
// tag, never the storage, since rewriting f16 would flush the small values that the scale saved. On
// a device a factor of the scale may be a number in device memory: the tag points to it, so the
// host need not wait for the value.
class Leaf final : public Node {
 public:
  using Node::Node;
  Grads backward(const Tensor&) override { return {}; }
  void release() noexcept override {}
  void accumulate(Tensor gradient);
  void clear();           // forgets the gradient; nothing is written
  void clear_gradient();  // the same, but its scale stays
  // The memory into which a first contribution may be written directly; undefined if there is none.
  Tensor destination() const;

  void own_buffer();

  Tensor buffer;  // an arena range, or allocated at first use
  // Without a buffer: the gradient went into a shard of the arena (Sharding::gradients).
  bool has_grad = false;
  bool has_master = false;  // an f32 master of this f16 or bf16 value takes the updates
  bool frozen = false;      // gradients from graphs recorded before the freezing are dropped
  double scale = 1;
  Tensor device_scale;  // f64 [1], another factor of the scale; undefined is 1
  // Set by optim/clip.h after clipping: no micro-batch can be added to the gradient any more.
  bool clipped_norm = false, clipped_value = false;
  // The whole scale. Reads device_scale, which is a synchronisation point on a device.
  double full_scale() const { return device_scale.defined() ? scale * device_scale.item() : scale; }
  std::function<void(const Tensor&)>
      on_final;  // called when this backward cannot add to the gradient any more
  // The module that registered it (core/autograd/leaf_owner_internal.h); null if `owned` is false.
  std::shared_ptr<LeafOwner> owner;
};

inline Tensor::Tensor(const Tensor&) noexcept = default;
inline Tensor::Tensor(Tensor&&) noexcept = default;
inline Tensor& Tensor::operator=(const Tensor&) & noexcept = default;
inline Tensor& Tensor::operator=(Tensor&&) & noexcept = default;
inline Tensor::~Tensor() = default;
static_assert(std::is_nothrow_move_constructible_v<Tensor>);

}  // namespace binade
