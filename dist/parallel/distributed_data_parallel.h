// DistributedDataParallel: every rank has the whole model and a part of each batch; gradients are
// averaged while backward is still running.
//
//   dist::DistributedDataParallel ddp(world.communicator(), model.parameters());
//   loss.backward();     // returns when every gradient is the mean over the ranks
//   sgd.step();          // the same on every rank
//
// Gradients are reduced in buckets, ranges of the arena (core/tensor/parameter.h), from the last
// parameter to the first: the order in which backward computes them. A bucket starts when it and
// all buckets before it are complete, on a separate thread. A loss is the mean over the rank's
// samples; with parts of equal size the result is the gradient of the whole batch.
//
// With gradients sharded over the same ranks (Sharding::gradients, core/tensor/parameter.h) a
// bucket is reduced into the ranges of the ranks that own them, which halves the bytes, and its
// memory is freed: .grad is then undefined, and the optimizer's step finds the gradients in the
// arena.
#pragma once
#include <binade/core/owned.h>
#include <binade/core/tensor/parameter.h>
#include <binade/dist/collective/communicator.h>
#include <binade/dist/parallel/overlap.h>

namespace binade::dist {

struct DistributedDataParallelOptions {
  int64_t bucket_bytes = int64_t(25) << 20;
  AllReduceOptions reduce = {};
  // After this many reductions the ranks compare checksums of all parameters: if a rank differs
  // from most, an error names it and the first parameter. 0: never.
  int64_t check_every = 100;
};

class DistributedDataParallel {
 public:
  // Collective over the group. The ranks compare names, sizes, dtypes and values: if a rank differs
  // from most, an error names it and the parameter (give all ranks the same seed or checkpoint).
  // The group may still be used for other collectives. It and the parameters must outlive this
  // object.
  DistributedDataParallel(Communicator& group, const ParameterList& parameters,
                          const DistributedDataParallelOptions& options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // While false, gradients stay local: use it for all but the last micro-batch of an accumulation
  // window; the last one reduces the sum once.
  void set_reduce(bool reduce);
  // Throws Error with the parameters that the last backward did not reach, whose buckets were not
  // reduced; the next backward throws it too.
  void finish() const;
  // Collective: compares the parameters of all ranks, as the constructor does.
  void compare_parameters();

  int64_t buckets() const;
  int64_t reductions() const;   // of all buckets
  uint64_t bytes_sent() const;  // by this rank, for gradients and comparisons
  // Times per bucket of the last backward that reduced, or so far in a running one. From any
  // thread.
  std::vector<BucketTimes> last_reduction() const;

 private:
  struct State;
  Owned<State> state_;
};

}  // namespace binade::dist
