// OpObserver: sees every op of a thread. AnomalyGuard, recompute() and the precision ledger are
// built on it, and you can build your own instruments on it:
//
//   struct Count : OpObserver {
//     void result(const OpEvent& event) override { ++ops; }
//     int ops = 0;
//   } count;
//   const ObserverScope scope(count);   // on this thread, while it exists
//
// Several observers may be active at once; the one that started last is called first. While an
// observer runs, its own ops are not observed, not recorded and not cast by a policy. An exception
// that it throws leaves the op. Without observers an op costs one test of a flag when it begins and
// one when it ends. In-place changes and optimizer steps are not ops. Under an observer ops are not
// fused and no backward writes over the gradient that it got, so that the observer sees each op and
// all values; an observer that only measures can declare that it accepts fused ops.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <span>

namespace binade {

struct BackwardOptions;
struct Decision;
struct Op;
struct Precision;
class Grads;

// An op begins: before its inputs are cast. Ops that only make a view have no such event.
struct EnterEvent {
  const Op& op;
};

// An op has computed its results. Ops inside a user-defined op are reported before that op.
struct OpEvent {
  const Op& op;     // alive during the event; its name is a literal
  uint32_t module;  // label_text(module) is the path of the running module (core/observe/label.h)
  std::span<const Tensor* const> inputs;  // as the op got them, after casts; some may be undefined
  std::span<const Tensor> outputs;
  bool in_backward;         // the op is part of a backward, or of a forward recomputed in it
  const Node* backward_of;  // whose backward; null if unknown
  bool recording;           // gradients are enabled
};

// The decision of a precision policy for an op, before the op runs. `casts[i]` tells whether input
// i is cast.
struct PolicyEvent {
  enum class Cast : uint8_t { none, made, cached };
  const Op& op;
  uint32_t module;
  const Precision& precision;
  const Decision& decision;               // core/precision/precision.h
  std::span<const Tensor* const> inputs;  // as given; some may be undefined
  std::span<const Cast> casts;
};

// An event in backward. The gradients include the loss scale of `run`.
struct GradientEvent {
  const Node& node;  // name(), label (the module), leaf, sizes
  const BackwardOptions& run;
  // Before the node's backward: the whole gradient of its result, undefined if it has several
  // results. For a leaf: its sum so far, after each contribution.
  const Tensor& upstream;
  Grads* gradients;  // after it: one per input, some undefined; null before, and for leaves
  // Set before the node's backward, else null: an instrument may put another gradient here, of the
  // same sizes, dtype and device, and likewise in `gradients`. It must own these tensors.
  Tensor* replaceable = nullptr;
};

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // True for an observer that only measures: ops run as without it. It must not read the values of
  // `upstream` in gradients(): they may have been overwritten.
  virtual bool accepts_fused_ops() const { return false; }
  virtual void enter(const EnterEvent&) {}
  virtual void result(const OpEvent&) {}
  virtual void policy(const PolicyEvent&) {}
  virtual void upstream(const GradientEvent&) {}   // before a node's backward, or at a leaf
  virtual void gradients(const GradientEvent&) {}  // after a node's backward
};

// While one exists, the observer sees this thread's ops. Scopes may end in any order.
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

// While one exists, code on this thread is not observed, not recorded, not cast by a policy, and
// its waits for a device are not counted. For instruments that compute outside of an event.
class UnobservedGuard {
 public:
  UnobservedGuard();
  ~UnobservedGuard();
  UnobservedGuard(const UnobservedGuard&) = delete;
  UnobservedGuard& operator=(const UnobservedGuard&) = delete;

 private:
  ObserverScope* observers_;
  HostSyncGuard* syncs_;
  const PrecisionScope* precision_;
  bool grad_enabled_;
};

namespace detail {

struct Input;

// True if an observer of this thread does more than measure: it sees every op apart, and gradients
// stay as they were.
bool observers_read_values();

void notify_result(const Op& op, const Input* inputs, size_t count, const Tensor& y);
void notify_results(const Op& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs);
void notify_policy(const PolicyEvent& event);
void notify_upstream(const GradientEvent& event);
void notify_gradients(const GradientEvent& event);

}  // namespace detail
}  // namespace binade
