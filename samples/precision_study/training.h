// Training runs: one loop for all experiments, and its measurements.
#pragma once
#include "tasks.h"

namespace study {

inline constexpr double kDynamic = 0, kUnscaled = 1;

struct Recipe {
  Precision precision = Precision::full();
  double loss_scale = kDynamic;  // or a constant; f32 runs need none and take kUnscaled
  bool adam = false;             // AdamW, else SGD
  double lr = 0.1;
  double momentum = 0;  // of SGD
  double decay = 0;
  bool cosine = false;  // lr falls to 0 along a cosine after a warm-up
  int64_t steps = 300;
  uint64_t seed = 1;
  int64_t lens = 0;           // steps between looks of the exponent lens at gradients; 0: none
  int64_t count_updates = 0;  // steps between counts of updates and of those lost; 0: none
  // Makes gradients smaller or larger and changes nothing else: the loss is multiplied by it and lr
  // divided. With SGD and a power of two an f32 run is the same bit for bit.
  double loss_factor = 1;
  LowUpdates low_updates = LowUpdates::nearest;  // of weights without masters
};

struct Run {
  std::vector<double> losses;  // of every step, on its batch
  double test_loss = 0, accuracy = 0;
  int64_t skipped = 0;
  double last_scale = 1;
  bool finite = true;       // a run ends at a loss that is not
  double seconds = 0;       // of CPU time; of the clock where the model is on a device
  int64_t saved_bytes = 0;  // kept for backward at the end of a forward
  int64_t peak_bytes = 0;   // most memory in use, above what was before the run

  // The true gradients of the steps that the lens observed.
  ExponentCounts activation_gradients = {}, weight_gradients = {};
  // Elements with a nonzero gradient in the counted steps, and those among them whose value, as
  // the optimizer keeps it, the step did not change.
  int64_t updates = 0, swallowed = 0;

  double end_loss() const;  // mean over the last tenth of the steps
};

// The state that an experiment reads after each backward, before the step.
struct Moment {
  int64_t step;
  nn::Module& model;
  optim::Optimizer& optimizer;
};
using Look = std::function<void(const Moment&)>;

Run train_model(const Task& task, const Recipe& recipe, const Look& look = {});

// The tensors to which the optimizer adds its updates, per parameter: the master, else the
// parameter. On the host.
std::vector<Tensor> kept_values(nn::Module& model, const optim::Optimizer& optimizer);

// The means over windows of `width` steps, at the last step of each window: a smooth curve.
struct Curve {
  std::vector<double> x, y;
};
Curve smooth(const std::vector<double>& losses, int64_t width);

}  // namespace study
