#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/checkpoint_store.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

namespace binade::train {
namespace {

constexpr const char* kBest = "best";
constexpr std::string_view kStepPrefix = "step-", kTemporary = ".tmp", kReplaced = ".old";

std::string step_name(int64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08lld", static_cast<long long>(step));
  return std::string(kStepPrefix) + digits;
}

// The step of a name that step_name gives, else nothing.
std::optional<int64_t> step_of(std::string_view name) {
  int64_t step = -1;
  if (!name.starts_with(kStepPrefix)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kStepPrefix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

// The name without `suffix` if that leaves the name of a checkpoint, else empty.
std::string checkpoint_of(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) {
    return "";
  }
  name.remove_suffix(suffix.size());
  return name == kBest || step_of(name) ? std::string(name) : "";
}

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

// Removes a directory with files and links, but not one that has directories.
void remove_flat_directory(const std::string& parent, const std::string& name, FileSystem& files) {
  const std::string path = parent + "/" + name;
  const std::vector<DirectoryEntry> entries = list_directory(path, files);
  for (const DirectoryEntry& entry : entries) {
    check(!entry.is_directory, path,
          ": not removed, it has a directory that is not ours: ", entry.name);
  }
  for (const DirectoryEntry& entry : entries) {
    remove_path(entry, path, files);
  }
  remove_path({name, true, false}, parent, files);
}

}  // namespace

std::string Checkpoint::file(const std::string& name) const {
  check(files.contains(name), path, ": the checkpoint has no file ", name);
  return path + "/" + name;
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
  check(step >= 0, path_, ": got step ", step, ", expected none below 0");
  Checkpoint saved = save_as(step_name(step), step, files, fields);
  good_.insert(step);
  try {
    delete_old(step);
  } catch (const Error& error) {
    warn(error.what());
  }
  return saved;
}

Checkpoint CheckpointStore::save_best(int64_t step, std::span<const CheckpointFile> files,
                                      const std::map<std::string, std::string>& fields) {
  check(step >= 0, path_, ": got step ", step, ", expected none below 0");
  return save_as(kBest, step, files, fields);
}

std::optional<Checkpoint> CheckpointStore::newest_verified() {
  std::vector<int64_t> candidates = steps();
  for (; !candidates.empty(); candidates.pop_back()) {
    const int64_t step = candidates.back();
    try {
      Checkpoint checkpoint = verify(path_ + "/" + step_name(step));
      good_.insert(step);
      pinned_.insert(step);
      return checkpoint;
    } catch (const Error& error) {
      good_.erase(step);
      warn(text("checkpoint ", step_name(step), " is skipped: ", error.what()));
    }
  }
  return std::nullopt;
}

std::optional<Checkpoint> CheckpointStore::best_verified() {
  if (!has_directory(list_directory(path_, files_), kBest)) {
    return std::nullopt;
  }
  try {
    return verify(path_ + "/" + kBest);
  } catch (const Error& error) {
    warn(text("checkpoint ", kBest, " is skipped: ", error.what()));
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
  for (const DirectoryEntry& entry : list_directory(path_, files_)) {
    const std::optional<int64_t> step = step_of(entry.name);
    if (entry.is_directory && step) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> CheckpointStore::take_warnings() { return std::exchange(warnings_, {}); }

void CheckpointStore::warn(const std::string& warning) {
  if (warned_.insert(warning).second) {
    warnings_.push_back(warning);
  }
}

Checkpoint CheckpointStore::save_as(const std::string& name, int64_t step,
                                    std::span<const CheckpointFile> files,
                                    const std::map<std::string, std::string>& fields) {
  std::set<std::string> names;
  for (const CheckpointFile& file : files) {
    check_file_name(path_, file.name);
    check(names.insert(file.name).second, path_, ": got the file name ", file.name, " twice");
  }
  recover();
  check_space(files);
  try {
    const Manifest manifest = write_files(name + std::string(kTemporary), step, files, fields);
    put_in_place(name);
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

Manifest CheckpointStore::write_files(const std::string& directory, int64_t step,
                                      std::span<const CheckpointFile> files,
                                      const std::map<std::string, std::string>& fields) {
  const std::string path = path_ + "/" + directory;
  make_directories(path, files_);
  Manifest manifest{step, fields, {}};
  for (const CheckpointFile& file : files) {
    OutputFile out(path + "/" + file.name, files_);
    file.write(out);
    manifest.files[file.name] = {out.size(), out.checksum()};
    out.finish();
  }
  OutputFile out(path + "/" + kManifestName, files_);
  out.write(manifest_text(manifest));
  out.finish();
  sync_directory(path, files_);
  return manifest;
}

void CheckpointStore::check_space(std::span<const CheckpointFile> files) const {
  constexpr uint64_t kOverhead = 64 << 10;  // of a file: its blocks, its entry, the manifest
  uint64_t need = kOverhead;
  for (const CheckpointFile& file : files) {
    need += file.bytes + kOverhead;
  }
  const int64_t free = files_.free_bytes(path_);
  if (free >= 0 && static_cast<uint64_t>(free) < need) {
    throw FileError(text(path_, ": not enough space for a checkpoint: need ", need, " bytes, free ",
                         free, " (older checkpoints stay until the new one is whole)"),
                    ENOSPC);
  }
}

// Renames NAME.tmp to NAME. An existing NAME becomes NAME.old first, so that one of the two exists
// at every moment.
void CheckpointStore::put_in_place(const std::string& name) {
  const std::string path = path_ + "/" + name;
  const std::string replaced = path + std::string(kReplaced);
  const bool replaces = has_directory(list_directory(path_, files_), name);
  if (replaces) {
    rename_path(path, replaced, files_);
    sync_directory(path_, files_);
  }
  rename_path(path + std::string(kTemporary), path, files_);
  sync_directory(path_, files_);
  if (replaces) {
    try {
      remove_flat_directory(path_, name + std::string(kReplaced), files_);
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

// Removes .tmp and .old directories after any interruption.
void CheckpointStore::recover() {
  const std::vector<DirectoryEntry> entries = list_directory(path_, files_);
  for (const DirectoryEntry& entry : entries) {
    const std::string replaced = checkpoint_of(entry.name, kReplaced);
    if (!entry.is_directory || replaced.empty()) {
      continue;
    }
    if (has_directory(entries, replaced)) {
      sync_directory(path_, files_);  // the new one must be on disk before the old one is deleted
      remove_flat_directory(path_, entry.name, files_);
    } else {
      rename_path(path_ + "/" + entry.name, path_ + "/" + replaced, files_);
      sync_directory(path_, files_);
    }
  }
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory && !checkpoint_of(entry.name, kTemporary).empty()) {
      remove_flat_directory(path_, entry.name, files_);
    }
  }
}

void CheckpointStore::delete_old(int64_t saved_step) {
  const std::vector<int64_t> all = steps();
  int good = 0;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    const bool may_delete = good >= keep_ && *step != saved_step && !pinned_.contains(*step);
    if (may_delete) {
      remove_checkpoint(*step);
    } else if (*step == saved_step || is_good(*step)) {
      ++good;
    }
  }
}

bool CheckpointStore::is_good(int64_t step) {
  if (good_.contains(step)) {
    return true;
  }
  try {
    verify(path_ + "/" + step_name(step));
  } catch (const Error& error) {
    warn(text("checkpoint ", step_name(step), " is damaged: ", error.what()));
    return false;
  }
  good_.insert(step);
  return true;
}

// Deletes only directories whose manifest shows that they are checkpoints. The directory is first
// renamed to .tmp, so that a crash leaves no half-deleted checkpoint.
void CheckpointStore::remove_checkpoint(int64_t step) {
  const std::string name = step_name(step), path = path_ + "/" + name;
  try {
    const Manifest manifest = read_manifest(path, files_);
    check(manifest.step == step, path, ": the manifest is of step ", manifest.step);
    for (const DirectoryEntry& entry : list_directory(path, files_)) {
      check(entry.is_file && (entry.name == kManifestName || manifest.files.contains(entry.name)),
            path, ": it has a file that is not ours: ", entry.name);
    }
    const std::string temporary = name + std::string(kTemporary);
    rename_path(path, path_ + "/" + temporary, files_);
    sync_directory(path_, files_);
    good_.erase(step);
    remove_flat_directory(path_, temporary, files_);
  } catch (const Error& error) {
    warn(text("old checkpoint ", name, " is not deleted: ", error.what()));
  }
}

}  // namespace binade::train
