// RunCheckpoints saves a run and reads it again. Internal to train.
#pragma once
#include <binade/train/checkpoint_store.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_state_internal.h>
#include <binade/train/trainer.h>

#include <functional>
#include <memory>

namespace binade::train {

class RunCheckpoints {
 public:
  using Fields = std::map<std::string, std::string>;

  // REQUIRES: the arguments outlive it. Only rank 0 has a store, and only if the run has a
  // directory.
  RunCheckpoints(const TrainingParts& parts, const TrainerOptions& options, const Ranks& ranks);

  // Sets parts, random numbers and state from the newest checkpoint; false if there is none. `best`
  // gets the best weights so far. If the run was in full precision, to_full_precision() is called
  // before tensors are set. Collective.
  bool resume(RunState& state, NamedTensors& best, const std::function<void()>& to_full_precision);
  // REQUIRES: the ranks agree (TrainerRun::agree()). Collective.
  void save(const RunState& state);
  void save_best(const RunState& state, const NamedTensors& best);

 private:
  struct Resumed;
  Resumed read();
  Fields fields(const RunState& state) const;
  void read_fields(const Fields& fields, RunState& state);

  const TrainingParts& parts_;
  const TrainerOptions& options_;
  const Ranks& ranks_;
  std::unique_ptr<CheckpointStore> store_;
};

}  // namespace binade::train
