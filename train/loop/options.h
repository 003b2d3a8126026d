// TrainerOptions: how a run trains, validates, saves and logs.
#pragma once
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/kernels/optimizer/low_update.h>
#include <binade/train/logging/logger.h>
#include <binade/train/loop/callbacks.h>
#include <binade/train/metrics/metric.h>
#include <binade/train/precision/black_box.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace binade::train {

// Says whether a step on a device becomes one CUDA graph, recorded from the first full batches.
enum class StepGraph : uint8_t {
  automatic,  // for classification_step
  off,
  on,  // also for the user's step: its kernels must depend only on the batch's
       // tensors, and it must not read any
};

// The action of a run if its loss, gradients or weights are not finite. Weights are checked before
// each checkpoint and at the end of each epoch, in every precision: a NaN weight stays NaN.
// With a loss scaler, the scaler's own rule (AtFloor) holds for losses and gradients, since they
// may overflow in f16; the sentences about them below are for runs without a scaler.
//   error:     Diverged names the step and the first tensor that is not finite. On the CPU it comes
//              before the update, and the tensor is found by running the step once more under an
//              AnomalyGuard; on a device losses are read every 256 steps, before a checkpoint and
//              at the end of an epoch.
//   skip:      a step with such a loss or gradient is not applied: weights, moments and schedule
//              stay as they were, running statistics that are not finite are restored, and the
//              metrics count the step. Weights that are not finite are still an error.
//   roll_back: the run returns to its newest checkpoint and goes on with a smaller learning rate
//              (RollBackOptions), also if the loss scale is at its floor or if the loss of the
//              validation is not finite. A run directory is needed.
//   ignore:    the run goes on, with a warning if a checkpoint cannot be saved.
// A moment or an average that is not finite is found when it is to be saved, and is like a weight.
// skip and roll_back read every gradient once more per step, as a loss scaler does. An epoch or a
// run in which no step was applied is an error, unless the loss scale may still fall.
enum class OnNan : uint8_t { error, skip, roll_back, ignore };

// Options for OnNan::roll_back. Checkpoints hold the count and the rates for a resumed run.
struct RollBackOptions {
  double factor = 0.5;  // multiplies all learning rates, also the schedule's later ones; below 1
  int64_t most = 3;     // in the whole run; then it ends with the error
};

// When the Trainer validates. With `steps` it validates each time after so many steps and at the
// end of the run; lines of metrics at the ends of epochs then have no validation.
struct ValidateEvery {
  int64_t epochs = 1;
  int64_t steps = 0;  // 0: by epochs
};

// The number of batches per epoch and rank, 0: all. For a quick look at a program.
struct LimitBatches {
  int64_t train = 0, validation = 0, test = 0;
};

// Says whether a smaller or a larger monitored value is better. automatic knows it for losses,
// errors and the metrics of train/metrics; for other names an error asks for the mode.
enum class Mode : uint8_t { automatic, min, max };

struct TrainerOptions {
  // The run ends at the first limit: epochs (0: none; not given: 10, or none if there is another
  // limit), steps (0: none), seconds of training (0: none; a resumed run goes on counting).
  std::optional<int64_t> epochs = std::nullopt;
  int64_t max_steps = 0;
  double max_time = 0;
  int64_t accumulate = 1;  // micro-batches per step
  std::optional<double> clip_norm = std::nullopt;
  int64_t patience = 10;  // validations without a better monitored value; 0: never stop early
  // Directory for metrics and checkpoints; empty: none. A directory that is not empty is an error,
  // unless `resume` or `overwrite` says what to do with the run in it (train/run_directory.h).
  std::string run = {};
  // Resumes from the newest good checkpoint of `run`. Without checkpoints the run begins anew; if
  // none of them can be read, that is an error (train/checkpoint_store.h).
  bool resume = false;
  bool overwrite = false;  // move the earlier run in `run` to RUN.replaced-N and begin anew
  // Resume although the settings or the data differ from the checkpoint's: a warning names the
  // differences, and the new values count. Settings are `settings`, clip_norm, low_updates,
  // the samples per step (ranks x batch x accumulate), and of new optimizers learning rate,
  // momentum and weight decay. Limits (epochs, max_steps, max_time, patience), the split of a
  // step's samples into batches and the length of a schedule may change without it: one line says
  // the old and the new value.
  bool force = false;
  int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch only
  // A thread writes the checkpoints from a copy of weights and optimizer states in host memory,
  // while training goes on. A step waits for the copy (not for a copy from a device) and for the
  // previous save. The next save, or the end of fit(), throws the error of a save.
  bool async_save = false;
  bool progress = true;  // a line on standard output per epoch, a live one on a terminal
  // In a run with phases each has its own step instead.
  TrainingStep step = nullptr;  // null: classification_step
  // For validation and test, in evaluation mode and without recording. null: the step. A run with
  // phases that validates needs one.
  TrainingStep validation_step = nullptr;
  // For predict(): a Tensor or StepOutput::output and outputs; no loss. null: the validation step,
  // or for the default step the model's logits.
  TrainingStep predict_step = nullptr;
  // Measured in validation and test, over all ranks: validation_NAME and test_NAME. With the
  // default step and none given: {Accuracy()}.
  std::vector<MetricPtr> metrics = {};
  // The value that decides early stopping, the best weights and the plateau: a key of metrics.jsonl
  // such as "validation_mae" or "train_loss". Empty: "validation_loss", if there is validation
  // data.
  std::string monitor = {};
  Mode mode = Mode::automatic;
  ValidateEvery validate_every = {};
  LimitBatches limit_batches = {};
  // Trains on this many batches only, the same ones in every epoch, and validates on them. A model
  // that cannot overfit them has a mistake. 0: off.
  int64_t overfit_batches = 0;
  // Batches of validation that run before the first step, to find mistakes in the validation early.
  // They change neither weights, buffers, random numbers nor metrics. 0: none.
  int64_t sanity_batches = 2;
  std::vector<Callbacks> callbacks = {};
  std::vector<LoggerPtr> loggers = {};  // besides RUN/metrics.jsonl; on rank 0
  // A line per so many steps in metrics.jsonl and the loggers, with the loss of that step. 0: lines
  // only at validations and ends of epochs.
  int64_t log_every = 0;
  bool log_norms = false;  // gradient_norm (before clipping) and weight_norm in each line
  // The model is moved and converted before an optimizer is made; f16 without a scaler gets a
  // dynamic one. If the optimizer exists already, a model with another precision or device is an
  // error. Empty: the model stays as it is. Batches are always copied to the model's device.
  std::optional<Precision> precision = std::nullopt;
  std::optional<Device> device = std::nullopt;
  // Patterns of module paths that stay in evaluation mode while the run trains, with all below
  // them: for frozen batch norms. * stands for any characters of one name, ** for any number of
  // names: "body", "**.bn*". One that matches nothing is an error.
  std::vector<std::string> keep_eval = {};
  StepGraph graph = StepGraph::automatic;
  // How every optimizer of the run updates f16 and bf16 weights without masters
  // (Optimizer::set_low_updates), and the seed of stochastic rounding. Equal in a resumed run.
  LowUpdates low_updates = LowUpdates::nearest;
  uint64_t low_updates_seed = 0;
  OnNan on_nan = OnNan::error;
  RollBackOptions roll_back = {};
  // Every `lens` steps the exponent lens (train/lens.h) observes a step and appends to
  // RUN/lens.jsonl; at its end fit() writes RUN/lens.html. 0: never.
  int64_t lens = 0;
  std::string lens_layers = "*";  // module paths, a pattern
  // With a run directory fit() writes run.json (settings, environment, outcome), timeline.jsonl
  // (speed, waiting and memory over time) and at its end report.html (train/report/run_report.h).
  bool report = true;
  // Each step's line in RUN/scaler.jsonl gets the sizes of its gradients (train/precision/
  // scaler_log.h), which `binade replay` needs. Reads each gradient once more; on the CPU a step
  // that overflowed runs again, so a step of your own must change nothing but the model.
  bool record_gradients = false;
  // Every `shadow` steps a step is first run in f64 too (train/precision/shadow.h). Writes lines to
  // RUN/shadow.jsonl, and RUN/shadow.html at the end of fit(). A step of your own must change
  // nothing but the model. Only on one rank and without phases. 0: never.
  int64_t shadow = 0;
  // Keeps the first step whose loss or gradients are not finite in RUN/blackbox.safetensors
  // (train/precision/black_box.h). On the CPU, on one rank; the step runs again, as above.
  BlackBoxOptions black_box = {};
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
  // Words for the lines of validations and epochs, such as {"augment", "crop"}. They do not change
  // the run.
  std::vector<std::pair<std::string, std::string>> notes = {};
};

}  // namespace binade::train
