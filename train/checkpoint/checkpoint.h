// Checkpoints of a training loop of your own: one call saves, one call resumes.
//
//   train::LoaderPosition at{.loader = &loader};
//   train::load_checkpoint(run, model, adam, scaler, schedule, generator(), at);
//   for (; at.epoch < epochs; ++at.epoch, at.batch = 0) {
//     for (const data::Batch& batch : loader.epoch(at.epoch, at.batch)) {
//       ...
//       if (++at.batch % 100 == 0) {
//         train::save_checkpoint(run, model, adam, scaler, schedule, generator(), at);
//       }
//
// train/checkpoint/part.h lists the kinds of parts. Both calls take the same ones, in any order; a
// second model or optimizer needs a name: named("target", target). If the parts include all that
// the loop depends on, it resumes bit for bit.
//
// The protocol is the Trainer's (train/checkpoint_store.h, train/run_directory.h): checkpoints are
// in RUN/checkpoint, with checksums, and are written under another name and renamed. The newest one
// that verifies is loaded; the `keep` newest stay. One process at a time uses RUN, from its first
// call until its end or close_checkpoints(). Calls for one RUN may not overlap.
#pragma once
#include <binade/train/checkpoint/part.h>

#include <concepts>
#include <map>
#include <string>
#include <vector>

namespace binade::dist {
class Communicator;
}

namespace binade::train {

struct CheckpointOptions {
  std::string path;  // RUN
  // For the first call of a process, as in TrainerOptions. resume continues the run in RUN;
  // overwrite moves it to RUN.replaced-N and begins anew. With neither, RUN must be new or empty.
  bool resume = true;
  bool overwrite = false;
  int keep = 2;  // checkpoints
  // The number in the name of the checkpoint, at least that of the newest one. -1: the number of
  // applied steps of the first optimizer among the parts, or one more than that of the newest one
  // if that is larger.
  int64_t step = -1;
  // Settings that a resumed run must share with the one before: a difference is an error by name,
  // or with `force` a warning. `force` allows other data (LoaderPosition) too.
  std::map<std::string, std::string> settings = {};
  bool force = false;
  // save_checkpoint() copies the parts to host memory and returns; a thread writes the copy by the
  // same protocol. The next call for RUN, and close_checkpoints(), wait for it and throw its error.
  // The end of the process waits too, but only warns of an error: the last save of a loop should
  // not be asynchronous.
  bool async_save = false;
  // All ranks of the run, which then make each call together; rank 0 reads and writes, and its
  // numbers, text and random state become those of all. Null: this process alone.
  dist::Communicator* group = nullptr;
};

// A CheckpointPart, or an object that one is made of without a name.
template <class T>
concept AsCheckpointPart = std::convertible_to<T&&, CheckpointPart>;
// std::string and the like.
template <class T>
concept PathOfRun = std::convertible_to<const T&, std::string>;

// Saves the parts. Returns false, with a warning, if a tensor is not finite: nothing is saved then.
// Throws an Error if RUN has a checkpoint that this process has neither written nor loaded (call
// load_checkpoint() first), or if the new one cannot be written. Earlier checkpoints stay in all
// these cases.
bool save_checkpoint(const CheckpointOptions& options, const std::vector<CheckpointPart>& parts);

// Loads the newest checkpoint into the parts; false if there is none, and with `resume` off. One
// error lists the parts that are missing, not expected or of another kind; it, or a part whose
// content does not fit, changes nothing.
bool load_checkpoint(const CheckpointOptions& options, const std::vector<CheckpointPart>& parts);

// Other forms of the call: a path instead of the options, and the parts one by one.
template <PathOfRun Path>
bool save_checkpoint(const Path& path, const std::vector<CheckpointPart>& parts) {
  return save_checkpoint(CheckpointOptions{.path = path}, parts);
}
template <PathOfRun Path>
bool load_checkpoint(const Path& path, const std::vector<CheckpointPart>& parts) {
  return load_checkpoint(CheckpointOptions{.path = path}, parts);
}
template <AsCheckpointPart... Parts>
bool save_checkpoint(const CheckpointOptions& options, Parts&&... parts) {
  return save_checkpoint(options, std::vector<CheckpointPart>{std::forward<Parts>(parts)...});
}
template <AsCheckpointPart... Parts>
bool load_checkpoint(const CheckpointOptions& options, Parts&&... parts) {
  return load_checkpoint(options, std::vector<CheckpointPart>{std::forward<Parts>(parts)...});
}
template <PathOfRun Path, AsCheckpointPart... Parts>
bool save_checkpoint(const Path& path, Parts&&... parts) {
  return save_checkpoint(CheckpointOptions{.path = path}, std::forward<Parts>(parts)...);
}
template <PathOfRun Path, AsCheckpointPart... Parts>
bool load_checkpoint(const Path& path, Parts&&... parts) {
  return load_checkpoint(CheckpointOptions{.path = path}, std::forward<Parts>(parts)...);
}

// A hash of all that a checkpoint of the parts would hold, 16 hex digits: loops in the same state
// have the same one. The Trainer writes such a hash to metrics.jsonl as "state_hash".
std::string state_hash(const std::vector<CheckpointPart>& parts);

// Releases RUN before the process ends: another process may use it, and the next call here counts
// as a first call. Throws the error of a save in the background. Does nothing if no call was made
// for RUN.
void close_checkpoints(const std::string& path);

}  // namespace binade::train
