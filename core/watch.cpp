#include <binade/core/anomaly.h>
#include <binade/core/watch.h>

#include <algorithm>

namespace binade::detail {
namespace {

void watch(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  if (thread_state.collector && !grad_enabled()) {
    for (const Tensor* input : inputs) {
      thread_state.collector->note(*input);
    }
  }
  if (thread_state.anomaly && !thread_state.run) {  // else the gradient is what matters
    for (size_t i = 0; i < outputs.size(); ++i) {
      thread_state.anomaly->check_result(op, inputs, outputs[i], i);
    }
  }
}

}  // namespace

void LeafCollector::note(const Tensor& t) {
  const auto same = [&t](const Tensor& known) {
    return known.history().get() == t.history().get();
  };
  if (t.history() && std::none_of(tensors_.begin(), tensors_.end(), same)) {
    tensors_.push_back(t);
  }
}

void watch_op(const Op& op, const Input* inputs, size_t count, const Tensor& y) {
  std::vector<const Tensor*> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(&inputs[i].tensor);
  }
  watch(op, all, std::span(&y, 1));
}

void watch_outputs(const Op& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::vector<const Tensor*> all;
  for (const Tensor& input : inputs) {
    all.push_back(&input);
  }
  watch(op, all, outputs);
}

}  // namespace binade::detail
