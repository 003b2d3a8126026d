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
// The parts are those of train/checkpoint/part.h, in the same order (or under the same names) in
// both calls. With all that the loop depends on among them, a resumed loop continues bit for bit.
//
// The protocol is the Trainer's (train/checkpoint_store.h, train/run_directory.h): checkpoints are
// in RUN/checkpoint, written beside and renamed, with checksums; the newest that verifies is
// loaded, the `keep` newest stay; one process at a time uses RUN, from its first call for it until
// its end or close_checkpoints(). Calls for one RUN may not overlap.
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
  // For the first call of a process, as in TrainerOptions: continue the run in RUN; or move it to
  // RUN.replaced-N and begin anew. With neither, RUN must be new or empty.
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
  // same protocol. The next call for RUN, and close_checkpoints(), wait for it and throw its error;
  // a process that ends without waits too, and its error is a warning. The last save of a loop
  // should be one without.
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

// Saves the parts. Returns false, with a warning, if a tensor is not finite: nothing is saved then,
// and the checkpoint before stays. An Error if RUN has a checkpoint that this process has neither
// written nor loaded (load_checkpoint() comes first), or if it cannot be written: then too the
// checkpoints before stay.
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

// Gives RUN back before the process ends: another one may use it, and the next call here is a first
// one again. Throws the error of a save in the background. Nothing happens if no call was made for
// it.
void close_checkpoints(const std::string& path);

}  // namespace binade::train
