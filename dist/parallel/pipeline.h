// Pipelines: a model in stages on different devices of one process (Pipeline) or on different ranks
// (PipelineRank). A batch is split into micro-batches; stages work on different ones at the same
// time. Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline
// parallelism" (2019); D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN
// training" (2019), here with one version of the weights and a flush after each batch.
//
//   encoder.to(Device::parse("cuda:0"));
//   decoder.to(Device::parse("cuda:1"));
//   dist::Pipeline pipeline({{encoder.device(), [&](const Tensor& x) { return encoder(x); }},
//                            {decoder.device(), [&](const Tensor& x) { return decoder(x); }}});
//   pipeline.step(images, labels, loss);                 // gradients of the mean over the batch
//   adam.step(); ...
//
// Micro-batches are added in order under either schedule, so both give the same bits. Without
// micro-batches you need no class: decoder(encoder(x).to(decoder.device())).
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/owned.h>
#include <binade/dist/collective/communicator.h>

#include <functional>

namespace binade::dist {

class DistributedDataParallel;

enum class PipelineSchedule : uint8_t {
  gpipe,                     // all forwards, then all backwards
  one_forward_one_backward,  // each backward as early as possible: a stage holds at most as many
                             // micro-batches as there are stages from it to the end
};

struct PipelineStep {
  bool is_forward;
  int micro_batch;
  bool operator==(const PipelineStep&) const = default;
};
// The steps of a stage in one batch, in order.
std::vector<PipelineStep> pipeline_steps(PipelineSchedule schedule, int stage, int stages,
                                         int micro_batches);

struct PipelineStage {
  Device device;
  std::function<Tensor(const Tensor&)> forward;
  // If the stage has replicas on other ranks: averages their gradients once per batch.
  DistributedDataParallel* replicas = nullptr;
};

struct PipelineOptions {
  int micro_batches = 4;
  PipelineSchedule schedule = PipelineSchedule::gpipe;
};

// (output of the last stage, target) to a scalar: a mean over the samples of a micro-batch.
using PipelineLoss = std::function<Tensor(const Tensor&, const Tensor&)>;

class StageRunner;

// All stages in this process. One thread queues the work of all devices, which run concurrently;
// stages on the CPU run one after the other.
class Pipeline {
 public:
  // Throws Error if there are no stages or fewer than one micro-batch.
  explicit Pipeline(std::vector<PipelineStage> stages, const PipelineOptions& options = {});
  ~Pipeline();

  // Adds the gradients of the mean loss over the batch to the leaves of all stages and returns that
  // loss. x and target, on any device, are split along their first dimension, as evenly as
  // possible. options.scale multiplies the loss before backward.
  double step(const Tensor& x, const Tensor& target, const PipelineLoss& loss,
              const BackwardOptions& options = {});
  // The output for x as one batch, for evaluation.
  Tensor forward(const Tensor& x) const;
  // The largest number of micro-batches whose values a stage held at once.
  int most_held(int stage) const;

 private:
  std::vector<PipelineStage> stages_;
  PipelineOptions options_;
  std::vector<std::unique_ptr<StageRunner>> runners_;
};

// One stage in this process; the others on other ranks, each stage on any number of them. The ranks
// of a stage are replicas, in rank order: each has an equal part of the rows of every micro-batch
// and exchanges it with the ranks of the neighbouring stages that have these rows.
class PipelineRank {
 public:
  // Collective over `all`. Throws Error if ranks differ in `stages` or a stage has no rank.
  PipelineRank(Communicator& all, int stage, int stages);
  ~PipelineRank();

  // The ranks with this stage: for DistributedDataParallel, and for their share of the data.
  Communicator& replicas() { return *replicas_; }
  // Sets what this rank runs; call it before the first step.
  void set_stage(PipelineStage stage, const PipelineOptions& options = {});

  // The rows of the whole batch that this rank has: of x on the first stage and of target on the
  // last. Call it after set_stage(); `batch` must be a multiple of micro-batches x ranks of the
  // stage. If all stages have equally many ranks, the replicas may divide a batch in any way that
  // is the same for x and target.
  std::vector<int64_t> rows(int64_t batch) const;

  // Like Pipeline::step(); all ranks call it with the same options. The first stage reads x; the
  // last one reads target and loss and returns the loss; the others return 0. x and target are this
  // rank's rows. Throws Error if the ranks of two stages cannot share the rows of a micro-batch.
  double step(const Tensor& x, const Tensor& target, const PipelineLoss& loss,
              const BackwardOptions& options = {});
  int most_held() const;

 private:
  class Link;
  void connect(Communicator& all, int earlier, int ranks_before, int ranks_after);
  Tensor input(int micro_batch, const Tensor& x);

  int stage_, stages_;
  PipelineOptions options_;
  Owned<Communicator> replicas_;
  std::unique_ptr<Link> before_, after_;  // to the neighbouring stages; null at the ends
  Owned<StageRunner> runner_;
};

}  // namespace binade::dist
