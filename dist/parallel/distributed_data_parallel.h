// DistributedDataParallel: every rank has the whole model and a part of each batch; gradients are
// averaged while backward still runs.
//
//   dist::DistributedDataParallel ddp(world.communicator(), model.parameters());
//   loss.backward();     // returns when every gradient is the mean over the ranks
//   sgd.step();          // the same on every rank
//
// Gradients are reduced in buckets, ranges of the arena (core/tensor/parameter.h), from the last
// parameter to the first: the order in which backward makes them. A bucket starts when it and all
// before it are complete, on a thread of its own. A loss is the mean over the rank's samples; with
// equal parts the result is the gradient of the whole batch.
//
// With gradients sharded over the same ranks (Sharding::gradients, core/tensor/parameter.h) a
// bucket is reduced into the ranges of the ranks that own them, half the bytes, and its memory is
// given back: .grad is then undefined, and the optimizer's step finds what it needs in the arena.
#pragma once
#include <binade/core/tensor/parameter.h>
#include <binade/dist/collective/communicator.h>
#include <binade/dist/parallel/overlap.h>

namespace binade::dist {

struct DataParallelOptions {
  int64_t bucket_bytes = int64_t(25) << 20;
  AllReduceOptions reduce = {};
  // Every so many reductions the ranks compare checksums of all parameters: a rank that differs
  // from most is an error that names it and the first parameter. 0: never.
  int64_t check_every = 100;
};

class DistributedDataParallel {
 public:
  // Collective over the group. The ranks compare names, sizes, dtypes and values: a rank that
  // differs from most is an error that names it and the parameter (give all the same seed or
  // checkpoint). The group may go on with its own collectives; it and the parameters outlive this.
  DistributedDataParallel(Communicator& group, const ParameterList& parameters,
                          const DataParallelOptions& options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // While false, gradients stay local: for all but the last micro-batch of an accumulation window,
  // which then reduces their sum once.
  void set_reduce(bool reduce);
  // Throws Error with the parameters that the last backward did not reach, whose buckets were not
  // reduced; the next backward does so too.
  void finish() const;
  // Collective: compares the parameters of all ranks as at the start.
  void compare_parameters();

  int64_t buckets() const;
  int64_t reductions() const;   // of all buckets
  uint64_t bytes_sent() const;  // by this rank, for gradients and comparisons
  // Of the last backward that reduced, by bucket; during one, as far as it is. From any thread.
  std::vector<BucketTimes> last_reduction() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace binade::dist
