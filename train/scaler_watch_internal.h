// ScalerWatch asks the loss scaler of a phase for the Trainer: how many steps were skipped, which
// samples caused an overflow at the floor, and whether the run continues in full precision.
// Internal to train.
//
// On the CPU it asks at every step. On a device each question waits, so it asks only at some steps,
// which do not depend on the clock.
#pragma once
#include <binade/optim/loss_scaler.h>
#include <binade/optim/scaler_notes.h>
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_display_internal.h>
#include <binade/train/run_state_internal.h>

#include <memory>

namespace binade::train {

class ScalerWatch {
 public:
  // REQUIRES: the arguments outlive it. Without a scaler in the phase it does nothing.
  ScalerWatch(const Phase& phase, const Ranks& ranks, const RunDisplay& display)
      : phase_(phase), scaler_(phase.scaler), ranks_(ranks), display_(display) {}

  // Notes the samples of a micro-batch; `full`: it completes the step.
  void begin_step(const data::Batch& batch, bool full);
  // True if ask() must be called after this step.
  bool end_step(int64_t steps);
  // Throws if a step had an overflow at the floor. Prints the messages about skipped steps.
  void ask(int64_t steps);
  // True if the run must continue in full precision from this step on; then it warns.
  bool wants_full_precision(int64_t steps) const;
  void begin_full_precision();
  void begin_again();  // after a return to a checkpoint
  // Adds step and samples to the error. `newest` is the step of the last samples.
  void name_samples(optim::OverflowAtFloor& error, int64_t newest) const;
  std::string skipped_words(const RunState& state) const;  // "3/200, last in conv1"

 private:
  const Phase& phase_;
  optim::LossScaler* scaler_;
  const Ranks& ranks_;
  const RunDisplay& display_;
  std::unique_ptr<optim::ScalerNotes> notes_;
  // Samples of the current step and of steps that the scaler was not yet asked about.
  std::vector<int64_t> samples_;
  std::vector<std::vector<int64_t>> unasked_;
};

// "3, 7, 12", the first of many.
std::string list_of_samples(const std::vector<int64_t>& samples);

}  // namespace binade::train
