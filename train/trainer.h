// Trainer: the routine around a training step. The step itself, from a batch to a loss, is the
// user's.
//
//   train::Trainer trainer({.model = model, .optimizer = adam, .scaler = &scaler, .schedule =
//   &schedule},
//                          {.epochs = 10, .run = "runs/1"});
//   trainer.fit(train_loader, &validation_loader);
//   train::Evaluation test = trainer.test(test_loader);
//
// On a device the training loop waits for nothing: how a step ended and what the counters say is
// read when a progress line, a checkpoint or the end of an epoch needs it. Where every step does
// the same, the whole step becomes one CUDA graph (train/graphed_step.h).
//
// An overflow at the floor of the loss scale does what the scaler's AtFloor says; its error names
// the samples of the batch. With AtFloor::fp32 the run goes on in full precision, without a loss
// scale: weights are what their masters were, and an overflow in f32 is an error. A device is asked
// every 256 steps, at checkpoints and at the end of an epoch, so that runs repeat bit for bit.
//
// With a group of ranks (TrainerOptions::group) each has its own Trainer, model and loaders:
// gradients are averaged by dist/parallel/distributed_data_parallel.h, so the batch of a step is
// ranks x accumulate x batch. Metrics are over all ranks, and with them every decision is the same
// on all; rank 0 alone prints and keeps the run directory. Statistics of batch norms are each
// rank's own; their running means are averaged before they are used or kept.
//
// A run directory holds metrics.jsonl and checkpoint/ (train/checkpoint_store.h). A resumed run
// continues bit for bit, also in the middle of an epoch: weights, moments, scaler, schedule, random
// numbers, position in the data and the sums of the metrics are in the checkpoint. It may have
// another number of ranks; in the middle of an epoch ranks x batch must be the same.
#pragma once
#include <binade/data/loader.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/module.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/plateau.h>

#include <functional>
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
  // Gets the validation loss after each epoch; without validation data the training loss.
  optim::ReduceLROnPlateau* plateau = nullptr;
};

// The mean loss over a batch, with a gradient. Validation and test run the same step, with the
// model in evaluation mode (model.is_training() tells) and without recording.
using TrainingStep = std::function<Tensor(nn::Module& model, const data::Batch& batch)>;
// What a classifier does: cross entropy of the model's logits.
Tensor classification_step(nn::Module& model, const data::Batch& batch);

// Whether a step on a device becomes one CUDA graph, which replays what its first full batches did.
enum class StepGraph : uint8_t {
  automatic,  // for classification_step
  off,
  on,  // also for a step of the user's: its kernels must not depend on anything but the batch's
       // tensors, and it must not read any
};

// What a loss that is not finite does in a run without a loss scaler (with one, see AtFloor).
//   stop:   an error that names the step and the first tensor that is not finite. On the CPU it
//           comes before the update, and the tensor is found by running the step once more under an
//           AnomalyGuard; on a device losses are read every 256 steps, before a checkpoint and at
//           the end of an epoch. Weights that are not finite are an error there too.
//   ignore: the run goes on.
enum class OnNan : uint8_t { stop, ignore };

struct TrainerOptions {
  int64_t epochs = 10;
  int64_t accumulate = 1;  // micro-batches per step
  std::optional<double> clip_norm = std::nullopt;
  int64_t patience = 10;  // epochs without a better validation loss; 0: never stop early
  // Directory for metrics and checkpoints; empty: none. One that is not empty is an error, unless
  // `resume` or `overwrite` says what to do with the run in it (train/run_directory.h).
  std::string run = {};
  bool resume = false;           // from the newest good checkpoint of `run`, if there is one
  bool overwrite = false;        // remove what an earlier run left in `run` and begin anew
  int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch only
  bool progress = true;          // a line on standard output per epoch, a live one on a terminal
  TrainingStep step = nullptr;   // null: classification_step
  StepGraph graph = StepGraph::automatic;
  OnNan on_nan = OnNan::stop;
  // Every so many steps the exponent lens looks at a step (train/lens.h) and adds to
  // RUN/lens.jsonl; fit() ends with RUN/lens.html. 0: never.
  int64_t lens = 0;
  std::string lens_layers = "*";  // module paths, a pattern
  // All ranks of the run; null: this process alone. It outlives the Trainer, whose functions are
  // collective but for predict(). Loaders read the rank's shard; those for training have shards of
  // one size.
  dist::Communicator* group = nullptr;
  dist::DistributedDataParallelOptions data_parallel = {};
  // SIGINT or SIGTERM, to any rank, ends fit() on all after the step under way, with a checkpoint.
  bool stop_on_signal = false;
  // Settings that a resumed run must share with the one before: a difference is an error by name.
  std::map<std::string, std::string> settings = {};
  std::string augment = "none";  // what the data goes through: a remark for the metrics
};

struct Evaluation {
  double loss = 0;  // mean over the samples
  // Share of samples whose largest logit is the label, 0 to 1; none with a step of the user's,
  // which need not be a classification.
  std::optional<double> accuracy = std::nullopt;
  int64_t samples = 0;
};

class Trainer {
 public:
  // Opens the run directory. Throws where it cannot be written, where it holds something and
  // neither `resume` nor `overwrite` is set, or where a checkpoint to resume from does not fit the
  // parts or the settings.
  Trainer(const TrainingParts& parts, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Puts the whole model into training mode, then trains until `epochs` or until the validation
  // loss has not improved for `patience` epochs, then restores the weights of the best validation
  // loss. Without validation data the last weights stay. Once per run: after its end a further
  // call is an error; after a signal it goes on.
  void fit(data::Loader& train, data::Loader* validation = nullptr);
  // The loss of the step over the loader with the model in evaluation mode; without a step of the
  // user's the accuracy too.
  Evaluation validate(data::Loader& loader);
  // The same; adds test_accuracy, where there is one, to the last line of the metrics.
  Evaluation test(data::Loader& loader);
  // The class with the largest logit, per row of images [N, C, H, W] on any device.
  std::vector<int64_t> predict(const Tensor& images);

  int64_t epoch() const;  // the next one, or the one under way
  int64_t steps() const;
  bool resumed() const;
  int stopped_by() const;  // the signal that ended fit(), else 0
  // Steps that were replays of a graph; why steps are not, empty where they can be.
  int64_t graph_replays() const;
  const std::string& why_no_graph() const;

 private:
  std::unique_ptr<TrainerRun> run_;
};

}  // namespace binade::train
