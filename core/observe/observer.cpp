#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/backward_run_internal.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>

namespace binade {

using detail::thread_state;

ObserverScope::ObserverScope(OpObserver& observer)
    : observer_(observer), outer_(std::exchange(thread_state.observers, this)) {}

ObserverScope::~ObserverScope() {
  ObserverScope** at = &thread_state.observers;
  while (*at && *at != this) {
    at = &(*at)->outer_;
  }
  if (*at) {
    *at = outer_;
  }
}

UnobservedGuard::UnobservedGuard()
    : observers_(std::exchange(thread_state.observers, nullptr)),
      syncs_(std::exchange(thread_state.syncs, nullptr)),
      precision_(std::exchange(thread_state.precision, nullptr)),
      grad_enabled_(std::exchange(thread_state.grad_enabled, false)) {}

UnobservedGuard::~UnobservedGuard() {
  thread_state.observers = observers_;
  thread_state.syncs = syncs_;
  thread_state.precision = precision_;
  thread_state.grad_enabled = grad_enabled_;
}

namespace detail {
namespace {

template <class Event>
void tell(void (OpObserver::*what)(const Event&), const Event& event) {
  ObserverScope* const first = thread_state.observers;
  const UnobservedGuard unobserved;
  for (ObserverScope* scope = first; scope; scope = scope->outer()) {
    (scope->observer().*what)(event);
  }
}

void tell_result(const Op& op, std::span<const Tensor* const> inputs,
                 std::span<const Tensor> outputs) {
  const BackwardRun* run = thread_state.run;
  const Node* node = run ? run->current() : nullptr;
  const bool own_label = !node || thread_state.recomputing;  // else that of the differentiated node
  tell(&OpObserver::result, OpEvent{.op = op,
                                    .module = own_label ? thread_state.label : node->label,
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .in_backward = run != nullptr,
                                    .backward_of = node,
                                    .recording = grad_enabled()});
}

}  // namespace

bool observers_read_values() {
  for (const ObserverScope* scope = thread_state.observers; scope; scope = scope->outer()) {
    if (!scope->observer().accepts_fused_ops()) {
      return true;
    }
  }
  return false;
}

void notify_enter(const Op& op) { tell(&OpObserver::enter, EnterEvent{op}); }

void notify_result(const Op& op, const Input* inputs, size_t count, const Tensor& y) {
  std::vector<const Tensor*> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(&inputs[i].tensor);
  }
  tell_result(op, all, std::span(&y, 1));
}

void notify_results(const Op& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::vector<const Tensor*> all;
  for (const Tensor& input : inputs) {
    all.push_back(&input);
  }
  tell_result(op, all, outputs);
}

void notify_policy(const PolicyEvent& event) { tell(&OpObserver::policy, event); }
void notify_upstream(const GradientEvent& event) { tell(&OpObserver::upstream, event); }
void notify_gradients(const GradientEvent& event) { tell(&OpObserver::gradients, event); }

}  // namespace detail
}  // namespace binade
