// Trainer: the training loop around a step. The user writes the step itself, from a batch to a
// loss.
//
//   train::Trainer trainer({.model = model, .optimizer = adam, .scaler = &scaler,
//                           .schedule = &schedule},
//                          {.epochs = 10, .run = "runs/1"});
//   trainer.fit(train_loader, &validation_loader);
//   train::Evaluation test = trainer.test(test_loader);
//
// On a device the training loop does not wait: the outcome of a step and the counters are read only
// when a progress line, a checkpoint or the end of an epoch needs them. If every step does the same
// work, the whole step becomes one CUDA graph (train/graphed_step.h).
//
// An overflow at the floor of the loss scale does what the scaler's AtFloor says; its error names
// the samples of the batch. With AtFloor::fp32 the run continues in full precision, without a loss
// scale: weights take the values of their masters, and an overflow in f32 is an error. A device is
// checked every 256 steps, at checkpoints and after epochs, so that runs repeat bit for bit.
//
// With a group of ranks (TrainerOptions::group) each has its own Trainer, model and loaders:
// gradients are averaged by dist/parallel/distributed_data_parallel.h, so the batch of a step is
// ranks x accumulate x batch. Metrics are over all ranks, so every decision is the same on all of
// them; only rank 0 prints and writes the run directory. Each rank has its own batch norm
// statistics; running statistics are averaged before they are used or saved.
//
// The user defines the validation: validation_step, or else the step itself under a NoGradGuard in
// evaluation mode, and metrics that measure its outputs (train/metrics/metric.h). The weights with
// the best monitored value are kept, saved and restored at the end.
//
// A run directory holds metrics.jsonl and checkpoint/ (train/run_directory.h,
// train/checkpoint_store.h); one process at a time uses it. A resumed run continues bit for bit,
// also in the middle of an epoch: weights, moments, scaler, schedule, random numbers, position in
// the data and the sums of the metrics are in the checkpoint. It may have another number of ranks;
// in the middle of an epoch ranks x batch must be the same. fit() throws if the data sets, their
// labels or their order differ (data/identity.h). A state that is not finite is never saved: the
// earlier checkpoint stays, and the run does what TrainerOptions::on_nan says.
#pragma once
#include <binade/core/owned.h>
#include <binade/data/loader.h>
#include <binade/train/loop/options.h>
#include <binade/train/loop/parts.h>

#include <string>
#include <vector>

namespace binade::train {

class TrainerRun;

// The error of a run that cannot go on, because its loss or weights are not finite or no step is
// applied. Checkpoints before it are whole.
class Diverged : public Error {
 public:
  using Error::Error;
};

struct Evaluation {
  double loss = 0;          // mean over the samples (StepOutput::weight)
  NamedValues values = {};  // of the metrics and of StepOutput::log, without a prefix
  int64_t samples = 0;

  bool has(const std::string& name) const;
  // "loss", or a name of `values`; an error lists the names that there are.
  double operator[](const std::string& name) const;
};

class Trainer {
 public:
  // Opens and locks the run directory. Throws if it cannot be written, if another process uses it,
  // if it is not empty and neither `resume` nor `overwrite` is set, if no checkpoint can be read,
  // or if the checkpoint to resume from does not fit the parts or the settings.
  Trainer(const TrainingParts& parts, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Puts the model into training mode (except keep_eval), then trains until the first limit of the
  // options or until the monitored value has not improved for `patience` validations, then restores
  // the weights with the best value. Without a monitored value the last weights stay. Mistakes that
  // can be seen before the first step are errors at once. After the end of the run another call is
  // an error; after a signal another call goes on.
  void fit(data::Loader& train, data::Loader* validation = nullptr);
  // Runs the validation step over the loader, with the model in evaluation mode.
  Evaluation validate(data::Loader& loader);
  // The same; adds test_loss and test_NAME to the last line of the metrics.
  Evaluation test(data::Loader& loader);
  // Runs the prediction over the loader's epoch 0 and joins the batches, on the CPU: "output" and
  // the names of StepOutput::outputs, and "indices", i64 [N], of the samples in the data set. Rows
  // are in the order of the data set, whatever the loader's order is. On several ranks: this rank's
  // shard.
  NamedTensors predict(data::Loader& loader);
  // The class with the largest logit, per row of images [N, C, H, W] on any device.
  std::vector<int64_t> predict(const Tensor& images);
  // Writes parameters and buffers to RUN/model.safetensors, as train::save_model() does. Throws if
  // the run has no directory, or if another process has taken it over.
  void save_model();

  int64_t epoch() const;  // the current or the next epoch
  int64_t steps() const;
  int64_t rollbacks() const;  // so far, of the whole run
  bool resumed() const;
  int stopped_by() const;  // the signal that ended fit(), else 0
  // Why fit() ended before its epochs: max_steps, max_time, patience, a signal or a callback; else
  // empty.
  const std::string& stop_reason() const;
  // The newest value of each key of metrics.jsonl, test included.
  const NamedValues& values() const;
  optim::Optimizer& optimizer(size_t phase = 0) const;
  Ema* ema() const;  // null without one
  // graph_replays() is the number of steps that were replays of a graph; why_no_graph() says why
  // steps cannot be replays and is empty if they can.
  int64_t graph_replays() const;
  const std::string& why_no_graph() const;

 private:
  Owned<TrainerRun> run_;
};

}  // namespace binade::train
