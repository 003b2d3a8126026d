// Checkpoints on disk: DIR/checkpoint/step-NNNNNNNN/ holds the files and manifest.json (sizes,
// CRC-32C, fields). A checkpoint is written as step-NNNNNNNN.X.tmp (X: unpredictable), every file
// and the directory synced, then renamed and the parent synced: after a crash there are the old
// checkpoints, and the new one is either complete or absent. Old ones are deleted only after that.
//
// A checkpoint that cannot be read is never deleted or overwritten. A damaged checkpoint is set
// aside under the name NAME.damaged (NAME.damaged-2, ...); one that a newer version of Binade wrote
// is left alone, and saving in its place is an error. Only files that a manifest, or the list of
// files in a temporary directory, names as the store's own are deleted; DIR may be a link, but none
// below it is followed.
//
// All functions may be called from several threads; a save may run on a background thread. One
// process at a time uses a store (train/run_directory.h has a lock for that).
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/core/owned.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace binade::train {

struct Manifest;

// One file of a checkpoint. `bytes` is its expected size, used for the check of free space.
struct CheckpointFile {
  std::string name;  // a plain file name, other than manifest.json and files.json
  uint64_t bytes = 0;
  std::function<void(OutputFile&)> write;
  std::string feature = {};  // what a reader must know to use it; empty: nothing special
};

struct Checkpoint {
  std::string path;  // of the directory
  int64_t step = 0;
  std::map<std::string, std::string> fields;
  std::map<std::string, uint64_t> files;  // name -> bytes

  std::string file(const std::string& name) const;  // path of a file; an error if it has none such
};

class CheckpointStore {
 public:
  // Makes directory/checkpoint if needed, removes the remains of interrupted saves, and restores a
  // checkpoint that was being replaced. `keep` >= 1 good checkpoints are kept.
  explicit CheckpointStore(const std::string& directory, int keep = 2);
  // REQUIRES: `files` outlives the store. Links are followed as `files` follows them.
  CheckpointStore(const std::string& directory, int keep, FileSystem& files);

  // Writes step-NNNNNNNN (replacing one of the same step), then deletes checkpoints older than the
  // `keep` newest good ones. On an error the older checkpoints are unchanged and the temporary
  // directory is removed. Throws if the disk has not enough free space, before writing.
  Checkpoint save(int64_t step, std::span<const CheckpointFile> files,
                  const std::map<std::string, std::string>& fields = {});
  // The same, but as DIR/checkpoint/best, which retention never deletes.
  Checkpoint save_best(int64_t step, std::span<const CheckpointFile> files,
                       const std::map<std::string, std::string>& fields = {});

  // The newest checkpoint whose files all match their checksums; this is `best` if it is newer than
  // the others that can be read. Damaged newer ones are set aside, each with a warning that says
  // what is wrong. Empty if there is none at all; if there are some and none can be read, an error
  // lists each, and nothing is changed. The one returned is pinned: retention never deletes it.
  // Throws an error and changes nothing if a newer version of Binade wrote a checkpoint, or if one
  // could not be read for a temporary reason (no permission, no memory).
  std::optional<Checkpoint> newest_verified();
  // `best`; empty if there is none. A damaged one is set aside with a warning.
  std::optional<Checkpoint> best_verified();
  // Reads and checks all files. Throws an Error that says what is wrong.
  Checkpoint verify(const std::string& path) const;

  // The steps that have a directory, in ascending order, good or damaged.
  std::vector<int64_t> steps() const;
  // Texts of this store's warnings since the last call.
  std::vector<std::string> take_warnings();
  const std::string& path() const { return path_; }  // DIR/checkpoint
  FileSystem& files() const { return files_; }       // where to read a checkpoint's files

 private:
  CheckpointStore(const std::string& directory, int keep, std::unique_ptr<FileSystem> files);
  Checkpoint save_as(const std::string& name, int64_t step, std::span<const CheckpointFile> files,
                     const std::map<std::string, std::string>& fields);
  Manifest write_files(const std::string& path, int64_t step, std::span<const CheckpointFile> files,
                       const std::map<std::string, std::string>& fields);
  void make_way(const std::string& name);
  void put_in_place(const std::string& temporary, const std::string& name);
  void recover();
  void recover_replaced(const std::string& replaced, const std::string& name);
  void remove_own(const std::string& directory);
  void set_aside(const std::string& name, const std::string& reason);
  std::string reason_against(const std::string& name) const;
  std::optional<Checkpoint> newest_good(std::map<std::string, std::string>& damaged);
  int64_t step_of_best() const;
  void delete_old(int64_t saved_step);
  void check_is_ours(const std::string& name) const;
  bool is_good(const std::string& name);
  void remove_checkpoint(int64_t step);
  std::vector<DirectoryEntry> entries() const;
  void warn(const std::string& warning);

  std::string path_;
  int keep_;
  Owned<FileSystem> own_files_;  // null if they were given
  FileSystem& files_;
  mutable std::mutex mutex_;    // for all that follows, and for the directory
  std::set<std::string> good_;  // names, verified or written by this process
  std::set<int64_t> pinned_;    // steps, loaded
  std::vector<std::string> warnings_;
  std::set<std::string> warned_;  // each warning is given once
};

}  // namespace binade::train
