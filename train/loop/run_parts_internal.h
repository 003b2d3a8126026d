// RunParts: the parts of a run as the Trainer uses them. Every run has phases; one of a single
// optimizer has one, without a name. Internal to train.
#pragma once
#include <binade/train/loop/options.h>
#include <binade/train/loop/parts.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::train {

struct Phase {
  std::string name;  // empty if it is the only one
  optim::Optimizer* optimizer = nullptr;
  optim::LossScaler* scaler = nullptr;
  optim::Schedule* schedule = nullptr;
  TrainingStep step;
  int64_t every = 1;
  int64_t applied_before = 0;  // steps of the optimizer that are not the run's
  std::unique_ptr<optim::Optimizer> own_optimizer;
  std::unique_ptr<optim::LossScaler> own_scaler;
  std::unique_ptr<optim::Schedule> own_schedule;

  // True if step number `step`, from 0, has this phase; the number of the first `steps` that do.
  bool takes_part(int64_t step) const { return (step + 1) % every == 0; }
  int64_t taken(int64_t steps) const { return steps / every; }
  // Counts those of the first `steps` steps of the run that were not applied. Waits for a device.
  int64_t skipped(int64_t steps) const {
    return taken(steps) - (optimizer->step_count() - applied_before);
  }
  void set_skipped(int64_t skipped, int64_t steps) {
    applied_before = optimizer->step_count() - (taken(steps) - skipped);
  }
  // "loss", or "NAME_loss" where there are several phases; "optimizer." or "optimizer.NAME.".
  std::string loss_name() const { return name.empty() ? "loss" : name + "_loss"; }
  std::string prefix(const std::string& what) const {
    return name.empty() ? what + "." : what + "." + name + ".";
  }
  // " of the phase NAME" for messages; nothing where there is one phase.
  std::string words() const { return name.empty() ? "" : " of the phase " + name; }
  ParameterList parameters() const;  // of all groups of the optimizer
};

struct RunParts {
  // Moves and converts the model if the options ask for it, and makes the parts given as functions.
  RunParts(const TrainingParts& parts, const TrainerOptions& options);

  nn::Module& model;
  std::vector<std::unique_ptr<Phase>> phases;
  optim::ReduceLROnPlateau* plateau = nullptr;
  Ema* ema = nullptr;
  std::unique_ptr<optim::ReduceLROnPlateau> own_plateau;
  std::unique_ptr<Ema> own_ema;

  Phase& first() const { return *phases[0]; }
  bool is_single() const { return first().name.empty(); }  // no phases
  optim::Optimizer& optimizer() const { return *first().optimizer; }
  Device device() const { return optimizer().device(); }
  bool has_scaler() const;
  int64_t skipped(int64_t steps) const;  // over all phases
  // Masters and moments of all optimizers. Collective if the arena is sharded.
  NamedTensors optimizer_tensors() const;
  // The averages, by the names of the model's state; of a run without an Ema: the model's state.
  NamedTensors evaluated_state() const;
};

}  // namespace binade::train
