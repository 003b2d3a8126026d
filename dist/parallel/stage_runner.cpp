#include <binade/core/autograd/hooks.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/dist/parallel/stage_runner_internal.h>

#include <algorithm>

namespace binade::dist {

MicroBatch micro_batch(const Tensor& batch, int m, const PipelineOptions& options) {
  check(batch.defined() && batch.dim() >= 1 && batch.size(0) >= options.micro_batches,
        "pipeline: got a batch of ", batch.defined() && batch.dim() >= 1 ? batch.size(0) : 0,
        " samples, expected at least one for each of ", options.micro_batches, " micro-batches");
  const int64_t n = batch.size(0), parts = options.micro_batches;
  return {n * m / parts, n * (m + 1) / parts, n};
}

// Makes the input a leaf, whose gradient goes to the previous stage.
StageRunner::Held& StageRunner::enter(int m, const Tensor& x) {
  Held& held = held_[m];
  most_held_ = std::max(most_held_, static_cast<int>(held_.size()));
  held.x = x.detach().to(stage_.device);
  if (index_ > 0) {
    held.x.require_grad();
    on_gradient(held.x, [&held](Tensor& gradient) { held.dx = gradient; });
  }
  held.y = stage_.forward(held.x);
  return held;
}

Tensor StageRunner::forward(int m, const Tensor& x) { return enter(m, x).y.detach(); }

double StageRunner::forward_loss(int m, const Tensor& x, const Tensor& target,
                                 const PipelineLoss& loss, double weight) {
  Held& held = enter(m, x);
  held.y = loss(held.y, target.to(stage_.device));
  held.weight = weight;
  check(held.y.numel() == 1, "pipeline: got a loss of shape ", held.y.sizes(),
        ", expected one element");
  return held.y.item() * weight;
}

Tensor StageRunner::backward(int m, const Tensor& dy, const BackwardOptions& options) {
  Held& held = held_.at(m);
  done_ = done_ % micro_batches_ + 1;
  if (stage_.replicas) {
    stage_.replicas->set_reduce(done_ == micro_batches_);
  }
  const Tensor seed = dy.defined() ? dy.to(stage_.device)
                                   : full(held.y.sizes(), options.scale * held.weight,
                                          held.y.dtype(), held.y.device());
  binade::backward(held.y, seed, options);
  const Tensor dx = held.dx;
  held_.erase(m);
  check(index_ == 0 || dx.defined(), "pipeline: the output of stage ", index_,
        " does not depend on its input, so the stages before get no gradient");
  return dx;
}

}  // namespace binade::dist
