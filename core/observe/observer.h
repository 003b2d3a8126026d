// OpObserver: who looks at every op of a thread. The one mechanism behind AnomalyGuard, recompute()
// and the precision ledger, and for instruments of your own:
//
//   struct Count : OpObserver {
//     void result(const OpEvent& event) override { ++ops; }
//     int ops = 0;
//   } count;
//   const ObserverScope scope(count);   // on this thread, while it exists
//
// Several observers may look at once; the one that began last is told first. While an observer
// works, its own ops are neither observed nor recorded nor cast by a policy. An exception it throws
// is that of the op. Where nobody observes, an op pays for one test of a flag. In-place changes and
// optimizer steps are no ops.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <span>

namespace binade {

struct BackwardOptions;
struct Decision;
struct Op;
struct Precision;
class Grads;

// An op has its results. Ops inside an op of the user's own come before that op.
struct OpEvent {
  const Op& op;     // alive during the event; its name is a literal
  uint32_t module;  // label_text(module) is the path of the module that runs (core/observe/label.h)
  std::span<const Tensor* const> inputs;  // as the op saw them, after casts; some may be undefined
  std::span<const Tensor> outputs;
  bool in_backward;         // the op is part of a backward, a recomputed forward included
  const Node* backward_of;  // whose; null where that is not known
  bool recording;           // gradients are enabled
};

// Before an op runs under a precision policy: what the policy decided for it. `casts[i]` says what
// becomes of input i.
struct PolicyEvent {
  enum class Cast : uint8_t { none, made, cached };
  const Op& op;
  uint32_t module;
  const Precision& precision;
  const Decision& decision;               // core/precision/precision.h
  std::span<const Tensor* const> inputs;  // as they were given; some may be undefined
  std::span<const Cast> casts;
};

// In backward. The gradients carry the loss scale of `run`.
struct GradientEvent {
  const Node& node;  // name(), label (the module), leaf, sizes
  const BackwardOptions& run;
  // Before the node's backward: the whole gradient of its result, undefined where it has several.
  // Of a leaf: its sum so far, after each contribution.
  const Tensor& upstream;
  Grads* gradients;  // after it: one per input, some undefined; null before, and for leaves
};

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void result(const OpEvent&) {}
  virtual void policy(const PolicyEvent&) {}
  virtual void upstream(const GradientEvent&) {}   // before a node's backward, or at a leaf
  virtual void gradients(const GradientEvent&) {}  // after it
};

// While one exists, the observer is told of this thread's ops. Scopes may end in any order.
class ObserverScope {
 public:
  explicit ObserverScope(OpObserver& observer);
  ~ObserverScope();
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

  OpObserver& observer() const { return observer_; }
  ObserverScope* outer() const { return outer_; }

 private:
  OpObserver& observer_;
  ObserverScope* outer_;
};

// What runs while one exists is nobody's business: it is not observed, not recorded, not cast by a
// policy, and waits for a device uncounted. For instruments that compute outside of an event.
class Unobserved {
 public:
  Unobserved();
  ~Unobserved();
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  ObserverScope* observers_;
  HostSyncGuard* syncs_;
  const PrecisionScope* precision_;
  bool grad_enabled_;
};

namespace detail {

struct Input;

void notify_result(const Op& op, const Input* inputs, size_t count, const Tensor& y);
void notify_results(const Op& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs);
void notify_policy(const PolicyEvent& event);
void notify_upstream(const GradientEvent& event);
void notify_gradients(const GradientEvent& event);

}  // namespace detail
}  // namespace binade
