// Checkpoints on disk: DIR/checkpoint/step-NNNNNNNN/ holds the files and manifest.json (sizes,
// CRC-32C, fields). A checkpoint is written as step-NNNNNNNN.tmp, every file and the directory
// synced, then renamed and the parent synced: after a crash there are the old checkpoints, and the
// new one is either complete or absent. Old ones are deleted only after that. One process at a time
// writes to a store.
#pragma once
#include <binade/core/io/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace binade::train {

struct Manifest;

// One file of a checkpoint. `bytes` is its expected size, used for the check of free space.
struct CheckpointFile {
  std::string name;  // a plain file name, other than manifest.json
  uint64_t bytes = 0;
  std::function<void(OutputFile&)> write;
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
  explicit CheckpointStore(const std::string& directory, int keep = 2,
                           FileSystem& files = file_system());

  // Writes step-NNNNNNNN (replacing one of the same step), then deletes checkpoints older than the
  // `keep` newest good ones. On an error the older checkpoints are unchanged and the temporary
  // directory is removed. Throws if the disk has not enough free space, before writing.
  Checkpoint save(int64_t step, std::span<const CheckpointFile> files,
                  const std::map<std::string, std::string>& fields = {});
  // The same, but as DIR/checkpoint/best, which retention never deletes.
  Checkpoint save_best(int64_t step, std::span<const CheckpointFile> files,
                       const std::map<std::string, std::string>& fields = {});

  // The newest checkpoint whose files all match their checksums. Damaged newer ones are skipped,
  // each with a warning that says what is wrong. The one returned is pinned: retention never
  // deletes it.
  std::optional<Checkpoint> newest_verified();
  std::optional<Checkpoint> best_verified();
  // Reads and checks all files. Throws an Error that says what is wrong.
  Checkpoint verify(const std::string& path) const;

  // The steps that have a directory, in ascending order, good or damaged.
  std::vector<int64_t> steps() const;
  // Texts of this store's warnings since the last call.
  std::vector<std::string> take_warnings();
  const std::string& path() const { return path_; }  // DIR/checkpoint

 private:
  Checkpoint save_as(const std::string& name, int64_t step, std::span<const CheckpointFile> files,
                     const std::map<std::string, std::string>& fields);
  Manifest write_files(const std::string& directory, int64_t step,
                       std::span<const CheckpointFile> files,
                       const std::map<std::string, std::string>& fields);
  void check_space(std::span<const CheckpointFile> files) const;
  void put_in_place(const std::string& name);
  void recover();
  void delete_old(int64_t saved_step);
  bool is_good(int64_t step);
  void remove_checkpoint(int64_t step);
  void warn(const std::string& warning);

  std::string path_;
  int keep_;
  FileSystem& files_;
  std::set<int64_t> good_;    // verified, or written by this process
  std::set<int64_t> pinned_;  // loaded
  std::vector<std::string> warnings_;
  std::set<std::string> warned_;  // each warning is given once
};

}  // namespace binade::train
