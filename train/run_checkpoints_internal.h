// RunCheckpoints: saves a run and reads it again. Internal to train.
#pragma once
#include <binade/train/background_saves_internal.h>
#include <binade/train/checkpoint_store.h>
#include <binade/train/loop/run_fields_internal.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_state_internal.h>
#include <binade/train/trainer.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace binade::train {

class RunDirectory;

class RunCheckpoints {
 public:
  // REQUIRES: the arguments outlive it. `directory` is null except on rank 0 of a run that has one;
  // only there is a store.
  RunCheckpoints(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks,
                 const RunDirectory* directory);

  // Sets parts, random numbers and state from the newest checkpoint; false if there is none. `best`
  // gets the best weights so far (RunParts::evaluated_state()). If the run was in full precision,
  // to_full_precision() is called before tensors are set. Collective.
  bool resume(RunState& state, NamedTensors& best, const std::function<void()>& to_full_precision);
  // Throws if a resumed run had other data sets before, or in the middle of an epoch (`in_epoch`)
  // another order of the samples; with TrainerOptions::force it warns. Later
  // checkpoints hold the identity of these data sets. `validation` may be null.
  void check_data(const data::Loader& train, const data::Loader* validation, bool in_epoch);
  // Call it before the first step, so that no step waits longer than for a copy. Collective.
  void prepare();
  // A state that is not finite is not saved, and the checkpoint before it stays: with
  // OnNan::ignore that is a warning; else take_refusal() says which tensor it is.
  // REQUIRES: the ranks agree (TrainerRun::agree()). Collective.
  // Returns whether there is a run directory.
  bool save(const RunState& state);
  void save_best(const RunState& state);
  // Names the tensor, once; empty if no save was refused. On rank 0. With
  // TrainerOptions::async_save it knows of the saves that have ended.
  std::string take_refusal();
  // Waits until saves in the background are on disk. Throws their error.
  void wait() { saves_.wait(); }

 private:
  template <class Save>
  void write(const char* what, const RunState& state, Save save);
  StateParts tensors() const;
  // The content of a checkpoint; rank 0 reads it for all ranks.
  struct Resumed {
    std::string path;
    RunFields fields;  // empty: there is no checkpoint
    NamedTensors model, optimizer, ema;
    NamedTensors scales;  // of all ranks
    NamedTensors best;
  };
  Resumed read();
  void read_best(Resumed& all) const;
  bool may_save(const char* what, const StateParts& parts);
  void show_warnings() const;
  RunFields fields(const RunState& state) const;
  void load(const Resumed& all);
  void load_now(const Resumed& all);
  void add_settings();
  void use_new_rates(const RunFields& fields, double scale);
  void tell_rates(const RunFields& fields) const;

  const RunParts& parts_;
  const TrainerOptions& options_;
  const Ranks& ranks_;
  const RunDirectory* directory_;
  std::unique_ptr<CheckpointStore> store_;
  RunFields settings_;  // of the options and optimizers, and the version of Binade
  RunFields stated_;    // options that may change
  struct Rates {
    double lr, momentum;
  };
  std::vector<std::vector<Rates>> first_rates_;  // of the groups of each phase's new optimizer
  RunFields data_;  // "data.train", ..., "data.order": of the checkpoint, then of the loaders
  std::mutex mutex_;
  std::string refusal_;    // under the mutex
  BackgroundSaves saves_;  // the last member: its thread uses the others
};

}  // namespace binade::train
