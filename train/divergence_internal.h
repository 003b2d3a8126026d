// DivergenceWatch looks for losses, gradients, weights and statistics that are not finite, and
// follows TrainerOptions::on_nan. Internal to train.
//
// A loss on the CPU is checked before backward. On a device nothing waits: a bad loss makes its
// gradients NaN, the optimizer skips that step, and the device's counters are read at a checkpoint
// and at the end of an epoch. In this way all ranks also learn of a bad loss on one of them.
#pragma once
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_state_internal.h>
#include <binade/train/trainer.h>

namespace binade::train {

class DivergenceWatch {
 public:
  // REQUIRES: the arguments outlive it.
  DivergenceWatch(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks)
      : parts_(parts), options_(options), ranks_(ranks) {}

  // Steps are counted from this state on: at the start, after an epoch and after a return to a
  // checkpoint. Waits for a device.
  void begin_epoch(const RunState& state);
  // Call it before the first micro-batch of a step.
  void begin_step();
  // The loss for backward(). `random` is the generator before the step.
  Tensor check_loss(const Phase& phase, const Tensor& loss, const data::Batch& batch,
                    const Generator& random, int64_t step) const;
  // StepOptions::check_finite: the optimizer skips a step whose gradients are not finite.
  bool checks_gradients(const Phase& phase) const { return skips() && !phase.scaler; }
  // Call it after step number `step`. It and the functions below are collective.
  void end_step(const Phase& phase, const optim::StepResult& result, int64_t step);
  // Checks the losses of this rank that were read so far.
  void check_read_losses(const RunState& state) const;
  // Checks everything so far; call it before a checkpoint. Waits for a device.
  void check(const RunState& state);
  void check_validation_loss(double loss, int64_t epoch) const;
  // Call it at the end of an epoch and of the run.
  void check_epoch(const RunState& state) const;
  void check_run(const RunState& state) const;

 private:
  bool ignores() const { return options_.on_nan == OnNan::ignore; }
  bool skips() const {
    return options_.on_nan == OnNan::skip || options_.on_nan == OnNan::roll_back;
  }
  bool losses_must_be_finite(const Phase& phase) const {
    return options_.on_nan == OnNan::error && !phase.scaler;
  }
  bool on_cpu() const { return parts_.device().is_cpu(); }
  std::string explain(const Phase& phase, const Tensor& loss, const data::Batch& batch,
                      const Generator& random) const;
  // Per phase. Waits for a device.
  std::vector<int64_t> skipped(const RunState& state) const;
  void keep_buffers();
  void restore_buffers() const;

  const RunParts& parts_;
  const TrainerOptions& options_;
  const Ranks& ranks_;
  int64_t steps_before_ = 0;             // of the epoch
  std::vector<int64_t> skipped_before_;  // per phase
  std::vector<int64_t> skipped_;         // when it was looked at last
  NamedTensors buffers_, kept_;          // floating ones of the model, and copies
};

// Sets the scale of the learning rates, also for later rates of the schedule.
void scale_rates(const RunParts& parts, RunState& state, double scale);

}  // namespace binade::train
