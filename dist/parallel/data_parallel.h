// DataParallel: the classic scheme, kept for comparison (use
// dist/parallel/distributed_data_parallel.h). Rank 0 has the model, the optimizer and the whole
// batch; every step replicates the parameters, scatters the batch, gathers the outputs for the
// loss, scatters their gradient and gathers the gradients of all replicas.
//
//   dist::DataParallel parallel(world.communicator(), model.parameters());
//   parallel.step(images, labels, [&](const Tensor& x) { return model(x); }, loss);
//   if (world.is_root()) { sgd.step(); sgd.zero_grad(); }
#pragma once
#include <binade/core/tensor/parameter.h>
#include <binade/dist/collective/communicator.h>
#include <binade/dist/parallel/pipeline.h>

namespace binade::dist {

class DataParallel {
 public:
  // Every rank has a model with the same parameters, not sharded. The group must outlive this
  // object.
  DataParallel(Communicator& group, const ParameterList& parameters);

  // Collective. Uses x, target and loss of rank 0. Leaves the gradient of loss(forward(x), target)
  // in rank 0's leaves and returns the loss there, 0 elsewhere. The first dimension of x is split
  // over the ranks.
  double step(const Tensor& x, const Tensor& target,
              const std::function<Tensor(const Tensor&)>& forward, const PipelineLoss& loss);

 private:
  void add_gradients();

  Communicator& group_;
  std::shared_ptr<Arena> arena_;
};

// Bytes that the ranks send in one step, without the few bytes to agree on each collective.
struct StepBytes {
  int64_t busiest = 0;  // the most that one rank sends or that one receives
  int64_t total = 0;    // over all ranks
};
// For a batch whose inputs and outputs have these sizes.
StepBytes data_parallel_bytes(int64_t parameter_bytes, int64_t batch_bytes, int64_t output_bytes,
                              int ranks);
// DistributedDataParallel: every rank sends and receives the same amount.
StepBytes distributed_data_parallel_bytes(int64_t parameter_bytes, int ranks);

}  // namespace binade::dist
