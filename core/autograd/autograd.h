// Recording ops and running backward.
//
// An op records one node: its edges, what it saved and its backward closure in a single allocation.
// A backward returns one gradient per input and never accumulates; only the engine accumulates, and
// only the engine sums a broadcast away. Ops use this through core/autograd/op.h.
#pragma once
#include <binade/core/autograd/node.h>

#include <array>
#include <span>
#include <string>
#include <type_traits>

namespace binade {

inline bool grad_enabled() { return detail::thread_state.grad_enabled; }

// While one exists, ops on this thread record nothing and save nothing. Other threads are not
// affected: a thread started under a guard records.
class NoGradGuard {
 public:
  NoGradGuard() : before_(std::exchange(detail::thread_state.grad_enabled, false)) {}
  ~NoGradGuard() { detail::thread_state.grad_enabled = before_; }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool before_;
};

// Turns recording on again, for example inside a backward that calls backward.
class GradGuard {
 public:
  GradGuard() : before_(std::exchange(detail::thread_state.grad_enabled, true)) {}
  ~GradGuard() { detail::thread_state.grad_enabled = before_; }
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool before_;
};

// The gradients of a running backward that are wanted, and where they may be written.
class Needs {
 public:
  Needs(const Edge* edges, int count) : edges_(edges), count_(count) {}
  bool operator[](int i) const { return edges_[i] && (!detail::thread_state.pruned || reaches(i)); }
  // Memory for gradient i, with the input's sizes: a parameter's arena range if this is its first
  // contribution, else new memory (dense, row-major). Undefined if gradient i is not wanted;
  // otherwise the backward must write all of it and return it.
  Tensor out(int i) const;
  // The same, but new memory gets these strides if they describe a dense tensor of the input's
  // sizes; for example the strides of the input.
  Tensor out_strided(int i, const Dims& strides) const;
  Tensor out_like(int i, const Tensor& like) const { return out_strided(i, like.strides()); }
  // The same with the strides of dy. If dy has the input's sizes and no other owner, the result is
  // dy's own memory, to be overwritten. For kernels that may write the gradient over dy.
  Tensor out_over(int i, const Tensor& dy) const;
  int size() const { return count_; }
  // The sizes of input i. REQUIRES: gradient i is wanted.
  const Dims& sizes(int i) const { return edges_[i]->sizes; }

 private:
  bool reaches(int i) const;
  Tensor direct(int i) const;
  const Edge* edges_;
  int count_;
};

// A tensor kept for a backward: its data without history, and its version. Reading it after the
// data was changed in place is an error.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& t) { hold(t); }
  Saved(Saved&& other) noexcept
      : data_(std::move(other.data_)),
        history_(other.history_),
        version_(other.version_),
        counted_(std::exchange(other.counted_, false)) {}
  Saved& operator=(Saved&& other) noexcept;
  ~Saved() { drop(); }
  void hold(const Tensor& t);  // REQUIRES: holds nothing
  void drop() noexcept {
    if (data_.defined()) {
      drop_held();
    }
  }
  const Tensor& get(const Node& node) const;

 private:
  void drop_held() noexcept;

  Tensor data_;
  const Node* history_ = nullptr;  // compared with the edges of the running node, never followed
  uint32_t version_ = 0;
  bool counted_ = false;
};

// Bytes that backward graphs hold besides the parameters: now, and the maximum since the last
// reset.
struct SavedBytes {
  int64_t live = 0, peak = 0;
};
SavedBytes saved_bytes();
void reset_peak_saved_bytes();

struct BackwardOptions {
  bool retain_graph = false;  // keep the graph for another backward
  // Record the backward itself, for higher derivatives. Such a gradient keeps its graph, and with
  // it the leaf, alive until zero_grad().
  bool create_graph = false;
  double scale = 1;          // the loss scale that the seed carries; tags the gradients
  Tensor device_scale = {};  // f64 [1], a further factor that only the device knows
};

// Adds d(root)/d(leaf) to the gradient of every leaf below root. Without a seed, root must have one
// element; the seed is then 1. Throws if root has no path to a leaf that wants a gradient, with the
// reason, or if the graph was freed.
void backward(const Tensor& root, const BackwardOptions& options = {});
void backward(const Tensor& root, const Tensor& seed, const BackwardOptions& options = {});

// Backward from several outputs at once, each with its upstream gradient.
struct Seed {
  Tensor root, gradient;
};
void backward(std::span<const Seed> seeds, const BackwardOptions& options = {});

struct GradOptions {
  std::vector<Tensor> upstream = {};  // one gradient per output; may be left out for one element
  bool retain_graph = false;
  bool create_graph = false;  // the gradients can be differentiated again
  bool allow_unused = false;  // true: an unused input gives undefined instead of an error
};
// The gradients of the outputs with respect to the inputs (leaves or results of ops), each with the
// dtype of its input. Reads and changes no .grad; computes only the gradients that lead to an
// input.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});
inline std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs,
                                const GradOptions& options = {}) {
  return grad(std::vector<Tensor>{output}, inputs, options);
}

namespace detail {

// Checks that t may be changed in place: an error if a gradient goes through it.
void check_in_place(const char* op, const Tensor& t);

struct Input {
  const Tensor& tensor;
  Input(const Tensor& t) : tensor(t) {}  // NOLINT
};

struct ToSave {  // null: not wanted
  const Tensor* tensor;
};

template <class F, size_t kInputs, size_t kSaved>
class OpNode final : public Node {
 public:
  OpNode(const Op* op, const Tensor& y, const std::array<ToSave, kSaved>& keep, const F& f)
      : Node(op, y), fn_(f) {
    edges = inputs_;
    edge_count = kInputs;
    for (size_t i = 0; i < kSaved; ++i) {
      if (keep[i].tensor && keep[i].tensor->defined()) {
        saved_[i].hold(*keep[i].tensor);
      }
    }
  }
  ~OpNode() override { OpNode::release(); }

  Grads backward(const Tensor& dy) override { return call(dy, std::make_index_sequence<kSaved>{}); }
  void release() noexcept override {
    if (std::exchange(released, true)) {
      return;
    }
    for (Saved& saved : saved_) {
      saved.drop();
    }
    for (Edge& edge : inputs_) {
      edge.drop();
    }
  }

 private:
  template <size_t... I>
  Grads call(const Tensor& dy, std::index_sequence<I...>) {
    const Needs needs(inputs_, kInputs);
    if constexpr (std::is_invocable_v<F&, const Tensor&, Needs, decltype((void(I), dy))...>) {
      return fn_(dy, needs, saved_[I].get(*this)...);
    } else {
      return fn_(dy, saved_[I].get(*this)...);
    }
  }

  Edge inputs_[kInputs];
  std::array<Saved, kSaved> saved_;
  F fn_;
};

// Ops with any number of inputs, saved tensors or outputs: cat, stack, split. dys has one entry per
// output; it is undefined if the output got no gradient.
using ManyBackward =
    std::function<Grads(std::span<const Tensor> dys, Needs needs, std::span<const Tensor> saved)>;
void record_many(const Op* op, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                 std::span<const Tensor> keep, ManyBackward backward);

void begin_node(Node& node, const Input* inputs, size_t count);

// The reasons why a tensor has no history. A result takes the bits of its inputs; only error
// messages read them.
enum Untracked : uint8_t {
  kHasHistory = 1,  // another handle of the same data has a history: this one is detached
  kUnderGuard = 2,  // computed under a NoGradGuard from a tensor that requires a gradient
  kDetached = 4,    // computed from a detached tensor
  kFrozen = 8,      // computed from a frozen parameter (nn/module.h)
  kPlainOp = 16,    // computed by an op that has no gradient
};
// What a tensor keeps of them: its bits in the low byte, and in the high byte those that a result
// without history takes over from it.
constexpr uint16_t untracked_word(uint8_t bits) {
  const bool detached = (bits & (kHasHistory | kFrozen)) == kHasHistory;
  return static_cast<uint16_t>(bits | ((bits & ~kHasHistory) | (detached ? kDetached : 0)) << 8);
}
inline uint8_t untracked_bits(const Tensor& t) {
  return static_cast<uint8_t>(t.handle()->untracked.load(std::memory_order_relaxed));
}
inline void set_untracked_word(const Tensor& t, uint16_t word) {
  if (t.handle()->untracked.load(std::memory_order_relaxed) != word) {
    t.handle()->untracked.store(word, std::memory_order_relaxed);
  }
}
inline void set_untracked_bits(const Tensor& t, uint8_t bits) {
  set_untracked_word(t, untracked_word(bits));
}
// The bits that a result without history takes over from an input.
inline uint8_t untracked_from(const Tensor& input, uint8_t with_history) {
  if (!input.defined()) {
    return 0;
  }
  return input.requires_grad()
             ? with_history
             : static_cast<uint8_t>(input.handle()->untracked.load(std::memory_order_relaxed) >> 8);
}
// Marks a result without history. REQUIRES: bits come from untracked_from().
inline void set_untracked_result(const Tensor& y, uint8_t bits) {
  set_untracked_word(y, static_cast<uint16_t>(bits * 0x101));  // untracked_word(bits)
}
// For error messages: why a tensor has no history.
std::string why_untracked(const Tensor& t);

// Throws: an op recorded an undefined result.
[[noreturn]] void refuse_result(const Op& op);

// Tells the observers of this thread (core/observe/observer.h).
void notify_result(const Op& op, const Input* inputs, size_t count, const Tensor& y);

template <size_t kInputs, size_t kSaved, class F>
Tensor record(const Op* op, const Input (&inputs)[kInputs], Tensor& y,
              const std::array<ToSave, kSaved>& keep, const F& backward) {
  static_assert(std::is_trivially_copyable_v<F>,
                "a backward captures plain values only: list the tensors it needs in save()");
  if (!y.defined()) [[unlikely]] {
    refuse_result(*op);
  }
  if (thread_state.observers) [[unlikely]] {
    notify_result(*op, inputs, kInputs, y);
  }
  bool wanted = false;
  for (const Input& input : inputs) {
    wanted |= input.tensor.requires_grad();
  }
  if (!wanted || !thread_state.grad_enabled) {
    uint8_t bits = wanted ? kUnderGuard : 0;
    for (const Input& input : inputs) {
      bits |= untracked_from(input.tensor, 0);
    }
    set_untracked_result(y, bits);
    return std::move(y);
  }
  set_untracked_bits(y, kHasHistory);
  using Recorded = OpNode<F, kInputs, kSaved>;
  static_assert(sizeof(Recorded) <= UINT16_MAX);
  auto* node = new (allocate(sizeof(Recorded))) Recorded(op, y, keep, backward);
  node->bytes = sizeof(Recorded);
  begin_node(*node, inputs, kInputs);
  return Tensor(std::move(y), Ref<Node>::adopt(node));
}

}  // namespace detail

// save(a, b): the tensors that the backward receives, in this order. when(c, a): a if c, else an
// undefined tensor. It takes nothing else, so that save("path", model) can be a user's own.
inline detail::ToSave when(bool wanted, const Tensor& t) { return {wanted ? &t : nullptr}; }
namespace detail {
inline ToSave to_save(const Tensor& t) { return {&t}; }
inline ToSave to_save(ToSave t) { return t; }
template <class T>
concept Savable = std::is_base_of_v<Tensor, T> || std::is_same_v<T, ToSave>;
}  // namespace detail
template <detail::Savable... T>
std::array<detail::ToSave, sizeof...(T)> save(const T&... tensors) {
  return {detail::to_save(tensors)...};
}

}  // namespace binade
