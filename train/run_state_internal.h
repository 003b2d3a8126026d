// RunState: the numbers that a resumed run needs besides its tensors. Internal to train.
#pragma once
#include <binade/optim/optimizer.h>
#include <binade/train/running_loss_internal.h>

namespace binade::train {

struct RunState {
  int64_t epoch = 0, batch = 0;  // the next batch to train on
  int64_t steps = 0;
  RunningLoss loss;     // summed over this rank's samples of the epoch so far
  int64_t samples = 0;  // of all ranks
  double best_loss = 0;
  int64_t best_epoch = -1, bad_epochs = 0;
  bool finished = false;
  bool full_precision = false;  // AtFloor::fp32 came into effect
  int64_t global_batch = 0;     // ranks x batch of the checkpoint, 0: not known
  int64_t rollbacks = 0;        // OnNan::roll_back
  double rate_scale = 1;        // of the learning rates, after these
  int64_t applied_before = 0;   // steps of the optimizer that are not the run's

  // Steps that were not applied. Waits for a device.
  int64_t skipped(const optim::Optimizer& optimizer) const {
    return steps - (optimizer.step_count() - applied_before);
  }
};

}  // namespace binade::train
