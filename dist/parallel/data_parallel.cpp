#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/share.h>
#include <binade/dist/parallel/data_parallel.h>

namespace binade::dist {

DataParallel::DataParallel(Communicator& group, const ParameterList& parameters)
    : group_(group), arena_(parameters.arena()) {
  check(arena_ && arena_->sharding() == Sharding::none, "data parallel: got ",
        arena_ ? "a sharded arena" : "no parameters",
        ", expected the parameters of a model, not sharded");
}

double DataParallel::step(const Tensor& x, const Tensor& target,
                          const std::function<Tensor(const Tensor&)>& forward,
                          const PipelineLoss& loss) {
  const int64_t ranks = group_.size();
  const bool root = group_.is_root();
  check(!root || (x.defined() && x.dim() >= 1 && x.size(0) > 0 && x.size(0) % ranks == 0),
        "data parallel: got a batch of ", root && x.defined() && x.dim() >= 1 ? x.size(0) : 0,
        " samples, expected a multiple of ", ranks, " ranks");
  for (const Arena::Segment& segment : arena_->segments()) {
    group_.broadcast(segment.values);
  }
  const Tensor kind = root ? slice(x, 0, 0, x.size(0) / ranks) : Tensor();
  const Tensor part = empty_like(broadcast_kind(group_, kind, arena_->device()));
  group_.scatter(root ? x.contiguous() : Tensor(), part);
  const Tensor y = forward(part);
  Dims sizes = y.sizes();
  sizes[0] *= ranks;
  Tensor outputs = root ? empty(sizes, y.dtype(), y.device()) : Tensor();
  group_.gather(y.detach(), outputs);
  double value = 0;
  Tensor gradient;
  if (root) {
    outputs.require_grad();
    const Tensor mean = loss(outputs, target);
    mean.backward();
    gradient = outputs.grad().contiguous();
    value = mean.item();
  }
  const Tensor dy = empty(y.sizes(), y.dtype(), y.device());
  group_.scatter(gradient, dy);
  backward(y, dy);
  add_gradients();
  return value;
}

// Adds to the existing gradients of rank 0's leaves; the other ranks drop theirs.
void DataParallel::add_gradients() {
  const NoGradGuard guard;
  for (const Arena::Segment& segment : arena_->segments()) {
    const Tensor& own = segment.gradients;
    const Tensor all = group_.is_root()
                           ? empty({group_.size(), own.numel()}, own.dtype(), own.device())
                           : Tensor();
    group_.gather(own, all);
    if (group_.is_root()) {
      own.copy_(sum(all, {0}));
    }
  }
  if (!group_.is_root()) {
    arena_->clear_gradients();
  }
}

// Rank 0 receives the gradients and outputs of all others. It sends the parameters to one rank,
// which passes them on, and sends each rank its part of the batch and of the outputs' gradient.
StepBytes data_parallel_bytes(int64_t parameter_bytes, int64_t batch_bytes, int64_t output_bytes,
                              int ranks) {
  const int64_t others = ranks - 1;
  return {
      .busiest =
          std::max(others * (parameter_bytes + output_bytes / ranks),
                   parameter_bytes * (others > 0) + others * (batch_bytes + output_bytes) / ranks),
      .total = 2 * others * parameter_bytes + others * (batch_bytes + 2 * output_bytes) / ranks};
}

StepBytes distributed_data_parallel_bytes(int64_t parameter_bytes, int ranks) {
  const int64_t total = 2 * (ranks - 1) * parameter_bytes;
  return {.busiest = total / ranks, .total = total};
}

}  // namespace binade::dist
