#include <binade/train/checkpoint_directory_internal.h>
#include <binade/train/checkpoint_manifest_internal.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>
#include <vector>

namespace binade::train {
namespace {

constexpr std::string_view kStepPrefix = "step-";

// The files of a directory that the store wrote: the names in its manifest and its list of files.
std::set<std::string> own_names(const std::string& path, FileSystem& files) {
  std::set<std::string> names;
  const auto add = [&](const char* name, const auto& read) {
    try {
      read();
      names.insert(name);
    } catch (const Error& error) {
      if (!is_damage(error)) {
        throw;
      }
    }
  };
  add(kManifestName, [&] {
    for (const auto& [name, record] : read_manifest(path, files).files) {
      names.insert(name);
    }
  });
  add(kListName, [&] { names.merge(read_list(path, files)); });
  return names;
}

}  // namespace

std::string step_name(int64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08lld", static_cast<long long>(step));
  return std::string(kStepPrefix) + digits;
}

std::optional<int64_t> step_of(std::string_view name) {
  int64_t step = -1;
  if (!name.starts_with(kStepPrefix)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kStepPrefix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return step >= 0 && step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string checkpoint_of(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) {
    return "";
  }
  name.remove_suffix(suffix.size());
  const size_t digits = name.size() - std::min<size_t>(name.size(), 16);
  if (digits > 1 && name[digits - 1] == '.' &&
      name.find_first_not_of("0123456789abcdef", digits) == std::string_view::npos) {
    name = name.substr(0, digits - 1);
  }
  return name == kBest || step_of(name) ? std::string(name) : "";
}

bool is_damage(const Error& error) {
  const auto* file = dynamic_cast<const FileError*>(&error);
  const bool passing = dynamic_cast<const OutOfMemory*>(&error) != nullptr ||
                       dynamic_cast<const NewerCheckpoint*>(&error) != nullptr;
  constexpr int kOfFiles[] = {ENOENT, ENOTDIR, EISDIR, ELOOP, EINVAL, EIO, ENODATA};
  return !passing && (!file || std::find(std::begin(kOfFiles), std::end(kOfFiles), file->code()) !=
                                   std::end(kOfFiles));
}

std::string first_foreign(const std::string& path, FileSystem& files) {
  const std::vector<DirectoryEntry> entries = list_directory(path, files);
  const std::set<std::string> own = own_names(path, files);
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
    return !entry.is_file || !own.contains(entry.name);
  });
  return found == entries.end() ? "" : found->name;
}

std::string remove_own_directory(const std::string& parent, const std::string& name,
                                 FileSystem& files) {
  const std::string path = parent + "/" + name;
  std::string foreign = first_foreign(path, files);
  if (!foreign.empty()) {
    return foreign;
  }
  std::vector<DirectoryEntry> entries = list_directory(path, files);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const auto last = [](const std::string& n) { return n == kManifestName || n == kListName; };
    return last(a.name) < last(b.name);
  });
  for (const DirectoryEntry& entry : entries) {
    remove_path(entry, path, files);
  }
  remove_path({name, true, false}, parent, files);
  return "";
}

std::set<std::string> features_of(std::span<const CheckpointFile> files) {
  std::set<std::string> features;
  for (const CheckpointFile& file : files) {
    features.insert(file.feature);
  }
  features.erase("");
  return features;
}

void check_free_space(const std::string& path, uint64_t need, FileSystem& files) {
  const int64_t free = files.free_bytes(path);
  if (free >= 0 && static_cast<uint64_t>(free) < need) {
    throw FileError(text(path, ": not enough space for a checkpoint: need ", need, " bytes, free ",
                         free, " (older checkpoints stay until the new one is whole)"),
                    ENOSPC);
  }
}

}  // namespace binade::train
