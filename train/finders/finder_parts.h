// The parts that the finders (of batch size, learning rate, noise scale and memory) train for a few
// steps. Afterwards everything is as before, bit for bit: weights, masters, buffers, moments,
// counts, loss scale, random numbers and modes.
#pragma once
#include <binade/core/owned.h>
#include <binade/data/loader.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/step.h>

#include <optional>

namespace binade::train {

// REQUIRES: all outlive the call. The optimizer trains parameters of the model; a run with phases
// has several optimizers, and no finder for it.
struct FinderParts {
  nn::Module& model;
  optim::Optimizer& optimizer;
  optim::LossScaler* scaler = nullptr;  // needed where the model computes in f16
  TrainingStep step = nullptr;          // null: classification_step
  std::optional<double> clip_norm = std::nullopt;
};

// Restores the state of the parts at its end. It holds a copy of weights, buffers and moments.
class StateSnapshot {
 public:
  explicit StateSnapshot(const FinderParts& parts);
  ~StateSnapshot();
  StateSnapshot(const StateSnapshot&) = delete;
  StateSnapshot& operator=(const StateSnapshot&) = delete;

  void restore();

 private:
  struct Kept;
  FinderParts parts_;
  Owned<Kept> kept_;
};

// Batches of any size made of the samples of one batch, which repeat where it has too few.
class BatchMaker {
 public:
  explicit BatchMaker(data::Batch samples);
  // The batch of epoch 0 whose samples have most bytes, among the first `look` batches (0: all):
  // for data whose samples differ in size, such as sentences. Abandons an epoch in progress.
  static BatchMaker largest(data::Loader& loader, int64_t look = 16);

  data::Batch make(int64_t size) const;  // on the device of the samples, with their strides' order
  int64_t samples() const { return samples_.size; }
  // Bytes of one sample in the fields of a batch.
  double bytes_per_sample() const;

 private:
  data::Batch samples_;
};

// One training step as the Trainer does it: forward, backward, update. Returns the loss.
double train_step(const FinderParts& parts, const data::Batch& batch);

}  // namespace binade::train
