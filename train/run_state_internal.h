// RunState: the numbers that a resumed run needs besides its tensors. Internal to train.
#pragma once
#include <binade/train/loop/running_values_internal.h>

namespace binade::train {

struct RunState {
  int64_t epoch = 0, batch = 0;  // the next batch to train on
  int64_t steps = 0;
  // Means of the epoch so far over this rank's samples: the losses of the phases under
  // Phase::loss_name(), and what the steps log.
  RunningValues losses, logs;
  double best_value = 0;                   // of what is monitored
  int64_t best_epoch = -1, bad_looks = 0;  // looks: each time there is a monitored value
  bool finished = false;
  bool full_precision = false;  // AtFloor::fp32 came into effect
  int64_t global_batch = 0;     // ranks x batch of the checkpoint, 0: not known
  int64_t accumulate = 0;       // its micro-batches per step, 0: not known
  int64_t rollbacks = 0;        // OnNan::roll_back
  double rate_scale = 1;        // of the learning rates, after these
  double seconds = 0;           // of training, counted with TrainerOptions::max_time only
};

}  // namespace binade::train
