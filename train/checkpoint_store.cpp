#include <binade/train/checkpoint_directory_internal.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/checkpoint_store.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace binade::train {
namespace {

bool has_directory(const std::vector<DirectoryEntry>& entries, const std::string& name) {
  return std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
    return entry.is_directory && entry.name == name;
  });
}

Checkpoint checkpoint_from(const std::string& path, const Manifest& manifest) {
  Checkpoint checkpoint{path, manifest.step, manifest.fields, {}};
  for (const auto& [name, record] : manifest.files) {
    checkpoint.files[name] = record.bytes;
  }
  return checkpoint;
}

}  // namespace

std::string Checkpoint::file(const std::string& name) const {
  check(files.contains(name), path, ": the checkpoint has no file ", name);
  return path + "/" + name;
}

CheckpointStore::CheckpointStore(const std::string& directory, int keep)
    : CheckpointStore(directory, keep, [&] {
        make_directories(directory);
        return file_system_below(directory);
      }()) {}

CheckpointStore::CheckpointStore(const std::string& directory, int keep,
                                 std::unique_ptr<FileSystem> files)
    : CheckpointStore(directory, keep, *files) {
  own_files_ = std::move(files);
}

CheckpointStore::CheckpointStore(const std::string& directory, int keep, FileSystem& files)
    : path_(directory + "/checkpoint"), keep_(keep), files_(files) {
  check(keep >= 1, path_, ": got keep ", keep, ", expected at least 1");
  make_directories(path_, files_);
  sync_directory(directory, files_);  // the directory may be there but not yet on disk
  recover();
}

Checkpoint CheckpointStore::save(int64_t step, std::span<const CheckpointFile> files,
                                 const std::map<std::string, std::string>& fields) {
  const std::lock_guard lock(mutex_);
  Checkpoint saved = save_as(step_name(step), step, files, fields);
  try {
    delete_old(step);
  } catch (const Error& error) {
    warn(error.what());
  }
  return saved;
}

Checkpoint CheckpointStore::save_best(int64_t step, std::span<const CheckpointFile> files,
                                      const std::map<std::string, std::string>& fields) {
  const std::lock_guard lock(mutex_);
  return save_as(kBest, step, files, fields);
}

// Nothing is changed before a good one is found.
std::optional<Checkpoint> CheckpointStore::newest_verified() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> damaged;  // name -> reason
  std::optional<Checkpoint> found = newest_good(damaged);
  if (!found && !damaged.empty()) {
    std::string all;
    for (const auto& [name, reason] : damaged) {
      all += text(all.empty() ? "" : "; ", name, ": ", reason);
    }
    fail(path_, ": got no checkpoint that can be read, expected one at least (", all,
         "); nothing was changed: mend one, begin anew with overwrite (--overwrite), which keeps "
         "all of this as RUN.replaced-N, or give another run directory");
  }
  for (const auto& [name, reason] : damaged) {
    set_aside(name, reason);
  }
  if (found) {
    const std::string name = found->path.substr(path_.size() + 1);
    good_.insert(name);
    if (const std::optional<int64_t> step = step_of(name)) {
      pinned_.insert(*step);
    }
  }
  return found;
}

// Notes the damaged ones that are newer than the one it returns.
std::optional<Checkpoint> CheckpointStore::newest_good(
    std::map<std::string, std::string>& damaged) {
  const auto good = [&](const std::string& name) -> std::optional<Checkpoint> {
    try {
      return verify(path_ + "/" + name);
    } catch (const Error& error) {
      if (!is_damage(error)) {
        throw;
      }
      good_.erase(name);
      damaged[name] = error.what();
      return std::nullopt;
    }
  };
  std::optional<Checkpoint> found;
  const std::vector<int64_t> all = steps();
  for (auto step = all.rbegin(); step != all.rend() && !found; ++step) {
    found = good(step_name(*step));
  }
  if (has_directory(entries(), kBest) && (!found || step_of_best() > found->step)) {
    if (const std::optional<Checkpoint> best = good(kBest)) {
      found = best;
    }
  }
  return found;
}

// -1 if its manifest cannot be read.
int64_t CheckpointStore::step_of_best() const {
  try {
    return read_manifest(path_ + "/" + kBest, files_).step;
  } catch (const Error& error) {
    if (!is_damage(error)) {
      throw;
    }
    return -1;
  }
}

std::optional<Checkpoint> CheckpointStore::best_verified() {
  const std::lock_guard lock(mutex_);
  if (!has_directory(entries(), kBest)) {
    return std::nullopt;
  }
  try {
    Checkpoint best = verify(path_ + "/" + kBest);
    good_.insert(kBest);
    return best;
  } catch (const Error& error) {
    if (!is_damage(error)) {
      throw;
    }
    set_aside(kBest, error.what());
    return std::nullopt;
  }
}

Checkpoint CheckpointStore::verify(const std::string& path) const {
  const Manifest manifest = read_manifest(path, files_);
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const std::optional<int64_t> step = step_of(name);
  check(!step || *step == manifest.step, path, ": the manifest is of step ", manifest.step);
  for (const auto& [file, record] : manifest.files) {
    verify_file(path + "/" + file, record, files_);
  }
  return checkpoint_from(path, manifest);
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  for (const DirectoryEntry& entry : entries()) {
    const std::optional<int64_t> step = step_of(entry.name);
    if (entry.is_directory && step) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> CheckpointStore::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

std::vector<DirectoryEntry> CheckpointStore::entries() const {
  return list_directory(path_, files_);
}

void CheckpointStore::warn(const std::string& warning) {
  if (warned_.insert(warning).second) {
    warnings_.push_back(warning);
  }
}

Checkpoint CheckpointStore::save_as(const std::string& name, int64_t step,
                                    std::span<const CheckpointFile> files,
                                    const std::map<std::string, std::string>& fields) {
  check(step >= 0 && step <= kMaxStep, path_, ": got step ", step, ", expected 0 to ", kMaxStep);
  std::set<std::string> names;
  for (const CheckpointFile& file : files) {
    check_file_name(path_, file.name);
    check(names.insert(file.name).second, path_, ": got the file name ", file.name, " twice");
  }
  recover();
  constexpr uint64_t kOverhead = 64 << 10;  // of a file: its blocks, its entry, the manifest
  uint64_t need = kOverhead;
  for (const CheckpointFile& file : files) {
    need += file.bytes + kOverhead;
  }
  check_free_space(path_, need, files_);
  make_way(name);
  const std::string temporary = text(name, ".", unpredictable_name(), kTemporary);
  try {
    const Manifest manifest = write_files(path_ + "/" + temporary, step, files, fields);
    put_in_place(temporary, name);
    good_.insert(name);
    return checkpoint_from(path_ + "/" + name, manifest);
  } catch (...) {
    try {
      recover();
    } catch (const Error& error) {
      warn(error.what());
    }
    throw;
  }
}

// The list of files is on disk before the first file, and is deleted once the manifest exists: at
// every moment one of the two says which files are the store's.
Manifest CheckpointStore::write_files(const std::string& path, int64_t step,
                                      std::span<const CheckpointFile> files,
                                      const std::map<std::string, std::string>& fields) {
  check(make_new_directory(path, files_), path, ": the name is taken, expected a free one");
  Manifest manifest{.step = step, .fields = fields, .files = {}, .features = features_of(files)};
  const auto write = [&](const std::string& name, const auto& write_bytes) {
    OutputFile out(path + "/" + name, files_);
    write_bytes(out);
    const FileRecord record{out.size(), out.checksum()};
    out.finish();
    return record;
  };
  std::set<std::string> names{kManifestName};
  for (const CheckpointFile& file : files) {
    names.insert(file.name);
  }
  write(kListName, [&](OutputFile& out) { out.write(list_text(names)); });
  sync_directory(path, files_);
  for (const CheckpointFile& file : files) {
    manifest.files[file.name] = write(file.name, file.write);
  }
  write(kManifestName, [&](OutputFile& out) { out.write(manifest_text(manifest)); });
  sync_directory(path, files_);
  remove_path({kListName, false, true}, path, files_);
  return manifest;
}

// If a directory has the name of a new checkpoint, it is deleted later only if it is a good one.
void CheckpointStore::make_way(const std::string& name) {
  if (good_.contains(name) || !has_directory(entries(), name)) {
    return;
  }
  const std::string reason = reason_against(name);
  if (!reason.empty()) {
    set_aside(name, reason);
  }
}

// Renames the temporary directory to NAME. An existing NAME becomes NAME.X.old first, so that one
// of the two exists at every moment.
void CheckpointStore::put_in_place(const std::string& temporary, const std::string& name) {
  const std::string path = path_ + "/" + name;
  const std::string replaced = text(name, ".", unpredictable_name(), kReplaced);
  const bool replaces = has_directory(entries(), name);
  if (replaces) {
    rename_path(path, path_ + "/" + replaced, files_);
    sync_directory(path_, files_);
  }
  rename_path(path_ + "/" + temporary, path, files_);
  sync_directory(path_, files_);
  if (replaces) {
    remove_own(replaced);
  }
}

// Removes temporary and replaced directories after any interruption.
void CheckpointStore::recover() {
  const std::vector<DirectoryEntry> all = entries();
  for (const DirectoryEntry& entry : all) {
    const std::string name = checkpoint_of(entry.name, kReplaced);
    if (entry.is_directory && !name.empty()) {
      recover_replaced(entry.name, name);
    }
  }
  for (const DirectoryEntry& entry : all) {
    if (entry.is_directory && !checkpoint_of(entry.name, kTemporary).empty()) {
      remove_own(entry.name);
    }
  }
}

// Deletes NAME.X.old if NAME is good; else NAME.X.old takes the place of NAME.
void CheckpointStore::recover_replaced(const std::string& replaced, const std::string& name) {
  if (has_directory(entries(), name)) {
    if (is_good(name)) {
      sync_directory(path_, files_);  // the new one must be on disk before the old one is deleted
      remove_own(replaced);
      return;
    }
    if (!reason_against(replaced).empty()) {
      return;  // neither can be read
    }
    set_aside(name, reason_against(name));
  }
  rename_path(path_ + "/" + replaced, path_ + "/" + name, files_);
  sync_directory(path_, files_);
}

// Deletes a directory that has only files of the store; else, or if it cannot be removed, warns.
void CheckpointStore::remove_own(const std::string& directory) {
  try {
    const std::string foreign = remove_own_directory(path_, directory, files_);
    if (!foreign.empty()) {
      warn(text(path_, "/", directory, ": not removed, it has a file that is not ours: ", foreign));
    }
  } catch (const FileError& error) {
    warn(text(path_, "/", directory, " is left over: ", error.what()));
  }
}

void CheckpointStore::set_aside(const std::string& name, const std::string& reason) {
  const std::string path = path_ + "/" + name;
  good_.erase(name);
  const std::string aside = rename_to_free_name(path, path + ".damaged", files_);
  sync_directory(path_, files_);
  warn(text("checkpoint ", name, " is skipped and kept as ", aside.substr(path_.size() + 1), ": ",
            reason));
}

// Says why a directory is no checkpoint; empty if it is one.
std::string CheckpointStore::reason_against(const std::string& name) const {
  try {
    verify(path_ + "/" + name);
    return "";
  } catch (const Error& error) {
    if (!is_damage(error)) {
      throw;
    }
    return error.what();
  }
}

void CheckpointStore::delete_old(int64_t saved_step) {
  const std::vector<int64_t> all = steps();
  int good = 0;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    const std::string name = step_name(*step);
    const bool may_delete = good >= keep_ && *step != saved_step && !pinned_.contains(*step);
    try {
      if (may_delete) {
        remove_checkpoint(*step);
      } else if (is_good(name)) {
        ++good;
      } else {
        check_is_ours(name);
        set_aside(name, reason_against(name));
      }
    } catch (const Error& error) {
      warn(text("old checkpoint ", name, " is not deleted: ", error.what()));
    }
  }
}

bool CheckpointStore::is_good(const std::string& name) {
  if (!good_.contains(name) && reason_against(name).empty()) {
    good_.insert(name);
  }
  return good_.contains(name);
}

// Throws unless a manifest shows that the directory is a checkpoint, damaged or not.
void CheckpointStore::check_is_ours(const std::string& name) const {
  const Manifest manifest = read_manifest(path_ + "/" + name, files_);
  check(step_of(name) == manifest.step, path_, "/", name, ": the manifest is of step ",
        manifest.step);
}

// Deletes only directories whose manifest shows that they are checkpoints. The directory is first
// renamed to .tmp, so that a crash leaves no half-deleted checkpoint.
void CheckpointStore::remove_checkpoint(int64_t step) {
  const std::string name = step_name(step), path = path_ + "/" + name;
  check_is_ours(name);
  const std::string foreign = first_foreign(path, files_);
  check(foreign.empty(), path, ": it has a file that is not ours: ", foreign);
  const std::string temporary = text(name, ".", unpredictable_name(), kTemporary);
  rename_path(path, path_ + "/" + temporary, files_);
  sync_directory(path_, files_);
  good_.erase(name);
  remove_own(temporary);
}

}  // namespace binade::train
