// Trainer: the training loop around a step. The user writes the step itself, from a batch to a
// loss.
//
//   train::Trainer trainer({.model = model, .optimizer = adam, .scaler = &scaler, .schedule =
//   &schedule},
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
// read every 256 steps, at checkpoints and at the end of an epoch, so that runs repeat bit for bit.
//
// With a group of ranks (TrainerOptions::group) each has its own Trainer, model and loaders:
// gradients are averaged by dist/parallel/distributed_data_parallel.h, so the batch of a step is
// ranks x accumulate x batch. Metrics are over all ranks, so every decision is the same on all of
// them; only rank 0 prints and writes the run directory. Each rank has its own batch norm
// statistics; running statistics are averaged before they are used or saved.
//
// A run directory holds metrics.jsonl and checkpoint/ (train/run_directory.h,
// train/checkpoint_store.h); one process at a time uses it. A resumed run continues bit for bit,
// also in the middle of an epoch: weights, moments, scaler, schedule, random numbers, position in
// the data and the sums of the metrics are in the checkpoint. It may have another number of ranks;
// in the middle of an epoch ranks x batch must be the same. The data sets must be the same ones
// (data/identity.h): others, other labels and another order are refused by fit(). A state that is
// not finite is never saved: the checkpoint before it stays, with a warning.
#pragma once
#include <binade/data/loader.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/module.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/plateau.h>
#include <binade/train/step.h>

#include <map>
#include <memory>
#include <optional>

namespace binade::train {

class TrainerRun;

// The parts of a run. Scaler and schedules are optional.
struct TrainingParts {
  nn::Module& model;
  optim::Optimizer& optimizer;
  optim::LossScaler* scaler = nullptr;
  optim::Schedule* schedule = nullptr;
  // Gets the validation loss after each epoch, or the training loss if there is no validation data.
  optim::ReduceLROnPlateau* plateau = nullptr;
};

// Says whether a step on a device becomes one CUDA graph, recorded from the first full batches.
enum class StepGraph : uint8_t {
  automatic,  // for classification_step
  off,
  on,  // also for the user's step: its kernels must depend only on the batch's
       // tensors, and it must not read any
};

// The action of a run whose loss, gradients or weights are not finite. Weights are looked at before
// each checkpoint and at the end of each epoch, in every precision: once one is NaN, no step mends
// it. Losses and gradients in f16 may overflow, so with a loss scaler its own rule holds for them
// (AtFloor); the other sentences about them are for runs without one.
//   error:     Diverged names the step and the first tensor that is not finite. On the CPU it comes
//              before the update, and the tensor is found by running the step once more under an
//              AnomalyGuard; on a device losses are read every 256 steps, before a checkpoint and
//              at the end of an epoch.
//   skip:      a step with such a loss or gradient is not applied: weights, moments and schedule
//              stay as they were, running statistics that are not finite are put back, and the
//              metrics count the step. Weights are an error all the same.
//   roll_back: the run returns to its newest checkpoint and goes on with a smaller learning rate
//              (RollBackOptions), also if the loss scale is at its floor or if the loss of the
//              validation is not finite. A run directory is needed.
//   ignore:    the run goes on.
// skip and roll_back read every gradient once more per step, as a loss scaler does. An epoch of
// which no step was applied is an error unless the loss scale may still fall; so is a run.
enum class OnNan : uint8_t { error, skip, roll_back, ignore };

// With OnNan::roll_back. The count and the rates are in the checkpoints: a resumed run knows them.
struct RollBackOptions {
  double factor = 0.5;  // of all learning rates, also those of the schedule to come; below 1
  int64_t most = 3;     // in the whole run; then it ends with the error
};

// The error of a run that cannot go on, because its loss or weights are not finite or no step is
// applied. Checkpoints before it are whole.
class Diverged : public Error {
 public:
  using Error::Error;
};

struct TrainerOptions {
  int64_t epochs = 10;
  int64_t accumulate = 1;  // micro-batches per step
  std::optional<double> clip_norm = std::nullopt;
  int64_t patience = 10;  // epochs without a better validation loss; 0: never stop early
  // Directory for metrics and checkpoints; empty: none. A directory that is not empty is an error,
  // unless `resume` or `overwrite` says what to do with the run in it (train/run_directory.h).
  std::string run = {};
  // From the newest good checkpoint of `run`. Without any it begins anew; if there are some and
  // none can be read, that is an error (train/checkpoint_store.h).
  bool resume = false;
  bool overwrite = false;  // move the earlier run in `run` to RUN.replaced-N and begin anew
  // Resume although the settings or the data differ from the checkpoint's: a warning names the
  // differences.
  bool force = false;
  int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch only
  // A thread writes the checkpoints from a copy of weights and optimizer states in host memory,
  // while training goes on; a step waits for the copy, and if the save before is not yet on disk
  // for that. An error of a save comes with the next one, or at the end of fit(), which waits.
  bool async_save = false;
  bool progress = true;  // a line on standard output per epoch, a live one on a terminal
  // Validation and test run the same step, with the model in evaluation mode (its is_training()
  // tells) and without recording. null: classification_step.
  TrainingStep step = nullptr;
  StepGraph graph = StepGraph::automatic;
  OnNan on_nan = OnNan::error;
  RollBackOptions roll_back = {};
  // Every `lens` steps the exponent lens (train/lens.h) observes a step and appends to
  // RUN/lens.jsonl; at its end fit() writes RUN/lens.html. 0: never.
  int64_t lens = 0;
  std::string lens_layers = "*";  // module paths, a pattern
  // All ranks of the run; null means this process alone. REQUIRES: the group outlives the Trainer.
  // The Trainer's functions are collective, except predict(). Loaders read the rank's shard;
  // training shards have one size.
  dist::Communicator* group = nullptr;
  dist::DistributedDataParallelOptions data_parallel = {};
  // SIGINT or SIGTERM to any rank ends fit() on all ranks after the current step, with a
  // checkpoint.
  bool stop_on_signal = false;
  // Settings that a resumed run must share with the one before: a difference is an error by name.
  std::map<std::string, std::string> settings = {};
  std::string augment_note = "none";  // a remark: "augment" in the metrics; it changes no data
};

struct Evaluation {
  double loss = 0;  // mean over the samples
  // Share of samples whose largest logit is the label, 0 to 1; empty with the user's own step,
  // which need not be a classification.
  std::optional<double> accuracy = std::nullopt;
  int64_t samples = 0;
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

  // Puts the whole model into training mode, then trains until `epochs` or until the validation
  // loss has not improved for `patience` epochs, then restores the weights of the best validation
  // loss. Without validation data the last weights stay. Once per run: after its end a further
  // call is an error; after a signal it goes on.
  void fit(data::Loader& train, data::Loader* validation = nullptr);
  // The loss of the step over the loader, with the model in evaluation mode; with the default step
  // the accuracy too.
  Evaluation validate(data::Loader& loader);
  // The same; adds test_accuracy, if there is one, to the last line of the metrics.
  Evaluation test(data::Loader& loader);
  // Writes parameters and buffers to RUN/model.safetensors, as train::save_model() does. Throws if
  // the run has no directory, or if another process has taken it over.
  void save_model();
  // The class with the largest logit, per row of images [N, C, H, W] on any device.
  std::vector<int64_t> predict(const Tensor& images);

  int64_t epoch() const;  // the current or the next epoch
  int64_t steps() const;
  int64_t rollbacks() const;  // so far, of the whole run
  bool resumed() const;
  int stopped_by() const;  // the signal that ended fit(), else 0
  // The number of steps that were replays of a graph; the reason why steps are not, empty if they
  // can be.
  int64_t graph_replays() const;
  const std::string& why_no_graph() const;

 private:
  std::unique_ptr<TrainerRun> run_;
};

}  // namespace binade::train
