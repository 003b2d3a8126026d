// Callbacks: functions of the user that the Trainer calls at named events, with a view of the run.
//
//   .callbacks = {{.validation = [](train::RunView& run) {
//     std::printf("step %lld: %.4f\n", (long long)run.step, run.value("validation_loss"));
//     if (run.value("validation_loss") < 0.1) { run.stop("good enough"); }
//   }}}
#pragma once
#include <binade/train/metrics/named_values.h>
#include <binade/train/step.h>

#include <exception>
#include <functional>
#include <span>
#include <string>

namespace binade::optim {
class Optimizer;
}

namespace binade::train {

class Ema;

enum class Event : uint8_t {
  train_start,  // before the first step, after the sanity check
  train_end,    // after the last step; the best weights are back
  epoch_start,
  epoch_end,   // after its validation and its line of metrics
  step,        // after each step of the optimizers
  validation,  // after each validation, not after the sanity check
  checkpoint,  // after a checkpoint was handed over to the disk
  exception,   // fit() ends with an error
};
const char* to_string(Event event);

// The run at an event. References are good until the callback returns.
struct RunView {
  Event event;
  int64_t epoch;  // from 0: the current one, or the one that ended
  int64_t batch;  // batches of the epoch so far
  int64_t step;   // steps of the run so far
  int rank, ranks;
  nn::Module& model;  // at `validation` it has the weights that are trained, not the averages
  std::span<optim::Optimizer* const> optimizers;  // one per phase
  Ema* ema;                                       // null without one
  // At `step`: the last batch and what the step returned for it, without history. Else null.
  const data::Batch* data;
  const StepOutput* output;
  // The newest value of each key of metrics.jsonl so far: train_loss, validation_loss, ...
  const NamedValues& values;
  const std::string& directory;  // of the run; empty: none
  const std::exception* error;   // at `exception`, else null

  optim::Optimizer& optimizer() const { return *optimizers[0]; }
  bool has(const std::string& key) const;
  // The newest value of a key; an error lists the keys that there are.
  double value(const std::string& key) const;
  // Ends fit() on all ranks after the current step, as TrainerOptions::max_steps does. It has no
  // effect at `train_end` and `exception`.
  void stop(const std::string& reason = "a callback asked for it") const;

  std::string* stop_reason;  // written by stop()
};

// Functions for some of the events; the others are empty. They run on every rank, in the thread of
// fit(). An exception from one ends fit().
struct Callbacks {
  using Function = std::function<void(const RunView& run)>;
  Function train_start = {}, train_end = {}, epoch_start = {}, epoch_end = {}, step = {},
           validation = {}, checkpoint = {}, exception = {};
};

}  // namespace binade::train
