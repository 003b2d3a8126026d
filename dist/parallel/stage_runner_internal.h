// Runs one stage of a pipeline on one micro-batch, wherever its neighbours are.
#pragma once
#include <binade/dist/parallel/pipeline.h>

#include <map>

namespace binade::dist {

// Part m of a batch that is split along its first dimension.
struct MicroBatch {
  int64_t begin, end, of;
  double weight() const { return static_cast<double>(end - begin) / static_cast<double>(of); }
};
// Throws Error if the batch has fewer samples than parts.
MicroBatch micro_batch(const Tensor& batch, int m, const PipelineOptions& options);

class StageRunner {
 public:
  StageRunner(const PipelineStage& stage, int index, int micro_batches)
      : stage_(stage), index_(index), micro_batches_(micro_batches) {}

  // The output for the next stage, without history. x comes from the previous stage, or is data.
  Tensor forward(int m, const Tensor& x);
  // The same for the last stage: stores the loss, times its weight, and returns it.
  double forward_loss(int m, const Tensor& x, const Tensor& target, const PipelineLoss& loss,
                      double weight);
  // dy is the gradient of the output (undefined: of the loss). Returns the gradient of the input,
  // undefined for the first stage.
  Tensor backward(int m, const Tensor& dy, const BackwardOptions& options);

  // Drops the values that a failed batch has left behind.
  void clear() { held_.clear(); }
  int most_held() const { return most_held_; }
  Device device() const { return stage_.device; }

 private:
  struct Held {
    Tensor x, y, dx;
    double weight = 1;
  };
  Held& enter(int m, const Tensor& x);

  PipelineStage stage_;
  int index_, micro_batches_;
  int most_held_ = 0, done_ = 0;
  std::map<int, Held> held_;  // by micro-batch
};

}  // namespace binade::dist
