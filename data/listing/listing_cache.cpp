#include <binade/core/observe/warning.h>
#include <binade/data/listing/listing_cache_internal.h>
#include <binade/data/store/manifest_text_internal.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxHeld = uint64_t{1} << 30;

std::string absolute(const std::string& path) {
  std::error_code error;
  std::string out = fs::absolute(path, error).lexically_normal().native();
  check(!error, path, ": cannot make the path absolute: ", error.message());
  return out;
}

bool is_strictly_sorted(const std::vector<DirectoryEntry>& entries) {
  return std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
           return a.name >= b.name;
         }) == entries.end();
}

}  // namespace

ListingCache::ListingCache(ListingCacheOptions options) : options_(std::move(options)) {
  constexpr double kMost = 1e9;
  check(options_.settled_seconds >= 0 && options_.settled_seconds <= kMost,
        "listing cache: got settled_seconds ", options_.settled_seconds, ", expected 0 to ", kMost);
  path_ = options_.file.empty() ? "" : absolute(options_.file);
}

void ListingCache::keep_out_of(const std::string& real_folder) const {
  if (path_.empty()) {
    return;
  }
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(parent_directory(path_), ignored);
  const fs::path folder = real_folder;
  const auto differs = std::mismatch(folder.begin(), folder.end(), place.begin(), place.end());
  check(differs.first != folder.end(), options_.file,
        ": the listing cache is inside of the folder ", real_folder,
        ", whose time it would change; choose a place outside");
}

std::vector<DirectoryEntry> ListingCache::list(const std::string& folder) {
  if (path_.empty()) {
    return list_directory(folder);
  }
  load();
  const std::string path = absolute(folder);
  const std::optional<DirectoryStamp> before = stamp(folder);
  if (before) {
    if (auto entries = kept_entries(path, *before)) {
      return std::move(*entries);
    }
  }
  // A change while the folder is listed makes its stamp another than `before`.
  const bool is_settled = before && settled(*before);
  std::vector<DirectoryEntry> entries = list_directory(folder);
  if (is_settled) {
    keep(path, *before, entries);
  }
  return entries;
}

// Reads the table of the file, once.
void ListingCache::load() {
  if (is_loaded_) {
    return;
  }
  is_loaded_ = true;
  try {
    place_ = file_system_below(parent_directory(path_));
    file_ = std::make_unique<ListingFile>(path_, *place_);
    for (const ListedFolder& folder : file_->folders()) {
      folders_.emplace(folder.path, Folder{.listed = folder});
    }
  } catch (const ForeignFile& error) {
    is_writable_ = false;
    warn(error.what());
  } catch (const FileError& error) {
    is_writable_ = error.code() == ENOENT;
    if (!is_writable_) {
      warn(text(error.what(), "; folders are listed without the listing cache ", options_.file));
    }
  } catch (const Error& error) {
    file_.reset();
    tell_damaged(error);
  }
}

// The file will be replaced.
void ListingCache::tell_damaged(const Error& error) {
  is_changed_ = true;
  if (!std::exchange(told_damaged_, true)) {
    warn(text(error.what(), "; folders are listed anew"));
  }
}

// The stamp of a folder; empty if there is none to rely on.
std::optional<DirectoryStamp> ListingCache::stamp(const std::string& folder) {
  DirectoryStamp stamp;
  const int result = file_system().stamp(folder, stamp);
  if (result == 0 && !std::exchange(told_kind_, true)) {
    warn(text(options_.file, ": the listing cache is not used for ", folder,
              ": its file system is not known to set the time of a folder when an entry changes"));
  }
  return result == 1 ? std::optional(stamp) : std::nullopt;
}

// The entries of a folder that still has the stamp with which they were kept.
std::optional<std::vector<DirectoryEntry>> ListingCache::kept_entries(const std::string& path,
                                                                      const DirectoryStamp& stamp) {
  const auto found = folders_.find(path);
  if (found == folders_.end() || found->second.listed.stamp != stamp) {
    return std::nullopt;
  }
  Folder& folder = found->second;
  folder.is_used = true;
  try {
    const std::string block = folder.block ? std::string() : file_->block(folder.listed);
    return unpack_entries(options_.file, folder.listed, folder.block ? *folder.block : block);
  } catch (const Error& error) {
    tell_damaged(error);
    folders_.erase(found);
    return std::nullopt;
  }
}

// True if every change from now on gives the folder other times.
bool ListingCache::settled(const DirectoryStamp& stamp) {
  if (is_writable_ && !started_) {
    find_time();
  }
  const auto nanoseconds = static_cast<int64_t>(options_.settled_seconds * 1e9);
  return started_ && std::max(stamp.modified, stamp.changed) < *started_ - nanoseconds;
}

// The time is that of a new file beside the cache, so that where both are on one file system, times
// of one clock are compared.
void ListingCache::find_time() {
  try {
    OutputFile probe(text(path_, ".", unpredictable_name(), ".tmp"));
    const int64_t time = file_system().modified(probe.path());
    file_system().remove_file(probe.path());
    started_ = time < 0 ? std::nullopt : std::optional(time);
  } catch (const Error& error) {
    tell_unwritten(error);
  }
}

void ListingCache::keep(const std::string& path, const DirectoryStamp& stamp,
                        const std::vector<DirectoryEntry>& entries) {
  if (!is_strictly_sorted(entries)) {
    return;
  }
  std::string block = pack_entries(entries);
  if (block.size() > kMaxListingBlock || block.size() > kMaxHeld - held_) {
    return;
  }
  held_ += block.size();
  is_changed_ = true;
  ListedFolder listed{.path = path,
                      .stamp = stamp,
                      .entries = static_cast<uint64_t>(entries.size()),
                      .bytes = static_cast<uint64_t>(block.size()),
                      .crc = crc_of(block)};
  folders_[path] = {.listed = std::move(listed), .block = std::move(block), .is_used = true};
}

void ListingCache::save() {
  if (path_.empty() || !is_changed_ || !is_writable_) {
    return;
  }
  drop_changed();
  is_changed_ = false;
  try {
    write();
  } catch (const Error& error) {
    tell_unwritten(error);
  }
}

void ListingCache::tell_unwritten(const Error& error) {
  is_writable_ = false;
  warn(text(error.what(), "; the listing cache ", options_.file, " is not written"));
}

// Drops folders that were not listed in this run, unless they and their blocks are as they were.
void ListingCache::drop_changed() {
  std::erase_if(folders_, [&](const auto& entry) {
    const Folder& folder = entry.second;
    return !folder.is_used && (stamp(entry.first) != folder.listed.stamp || !is_whole(folder));
  });
}

bool ListingCache::is_whole(const Folder& folder) {
  try {
    (void)file_->block(folder.listed);
    return true;
  } catch (const Error& error) {
    tell_damaged(error);
    return false;
  }
}

void ListingCache::write() {
  std::vector<ListedFolder> listed;
  for (const auto& [path, folder] : folders_) {
    listed.push_back(folder.listed);
  }
  const std::string head = listing_head(listed);
  write_file_durably(path_, [&](OutputFile& out) {
    out.write(head);
    for (const auto& [path, folder] : folders_) {
      out.write(folder.block ? std::string_view(*folder.block) : file_->block(folder.listed));
    }
  });
}

}  // namespace binade::data
