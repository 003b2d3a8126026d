// Who watches the ops of a thread. Internal to core.
#pragma once
#include <binade/core/autograd.h>

namespace binade::detail {

// Collects tensors with a history that ops under a NoGradGuard read: what a function captured.
class LeafCollector {
 public:
  void note(const Tensor& t);
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

inline void update_watched() {
  thread_state.watched = thread_state.anomaly || thread_state.collector;
}

void watch_outputs(const Op& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

}  // namespace binade::detail
