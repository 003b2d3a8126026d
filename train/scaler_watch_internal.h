// ScalerWatch asks the loss scaler for the Trainer: how many steps were skipped, which samples an
// overflow at the floor met, and whether the run goes on in full precision. Internal to train.
//
// On the CPU it asks at every step. On a device that is a wait, so it asks only now and then, at
// steps that do not depend on the clock.
#pragma once
#include <binade/optim/loss_scaler.h>
#include <binade/optim/scaler_notes.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_display_internal.h>
#include <binade/train/run_state_internal.h>

#include <memory>

namespace binade::train {

class ScalerWatch {
 public:
  // All outlive it. Without a scaler it does nothing.
  ScalerWatch(optim::LossScaler* scaler, const optim::Optimizer& optimizer, const Ranks& ranks,
              const RunDisplay& display)
      : scaler_(scaler), optimizer_(optimizer), ranks_(ranks), display_(display) {}

  // Notes the samples of a micro-batch; `full`: it completes the step.
  void begin_step(const data::Batch& batch, bool full);
  // Whether the scaler is to be asked after this step: follow() is due.
  bool end_step(int64_t steps);
  // Throws where a step met an overflow at the floor; says what there is to say.
  void ask(int64_t steps);
  // Whether the run shall go on in full precision from this step; warns then.
  bool wants_full_precision(int64_t steps) const;
  void begin_full_precision();
  // Adds step and samples to the error. `newest`: the step whose samples came last.
  void name_samples(optim::OverflowAtFloor& error, int64_t newest) const;
  std::string skipped_words(const RunState& state) const;  // "3/200, last in conv1"

 private:
  optim::LossScaler* scaler_;
  const optim::Optimizer& optimizer_;
  const Ranks& ranks_;
  const RunDisplay& display_;
  std::unique_ptr<optim::ScalerNotes> notes_;
  // Samples of the step under way, and of steps that the scaler has not been asked about.
  std::vector<int64_t> samples_;
  std::vector<std::vector<int64_t>> unasked_;
};

// "3, 7, 12", the first of many.
std::string list_of_samples(const std::vector<int64_t>& samples);

}  // namespace binade::train
