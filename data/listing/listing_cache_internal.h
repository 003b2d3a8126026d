// ListingCache: lists folders, from its file where that is as good as the folder. Internal to data.
#pragma once
#include <binade/data/listing/listing_cache.h>
#include <binade/data/listing/listing_file_internal.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace binade::data {

// For one thread. Its methods warn() about the file: once that it was not read, and once that it
// was not written.
class ListingCache {
 public:
  // Throws Error if settled_seconds is negative or not a number.
  explicit ListingCache(ListingCacheOptions options);

  // Throws Error if the file of the cache is inside of the folder, whose links are followed.
  void keep_out_of(const std::string& real_folder) const;
  // What list_directory() returns for the folder.
  std::vector<DirectoryEntry> list(const std::string& folder);
  // Writes the file if a folder was listed anew.
  void save();

 private:
  struct Folder {
    ListedFolder listed;
    std::optional<std::string> block = {};  // of a folder that was listed anew; else in the file
    bool is_used = false;                   // its stamp was compared in this run
  };
  void load();
  std::optional<DirectoryStamp> stamp(const std::string& folder);
  std::optional<std::vector<DirectoryEntry>> kept_entries(const std::string& path,
                                                          const DirectoryStamp& stamp);
  void keep(const std::string& path, const DirectoryStamp& stamp,
            const std::vector<DirectoryEntry>& entries);
  bool settled(const DirectoryStamp& stamp);
  void find_time();
  void tell_damaged(const Error& error);
  void tell_unwritten(const Error& error);
  void drop_changed();
  bool is_whole(const Folder& folder);
  void write();

  ListingCacheOptions options_;
  std::string path_;                   // of the file, absolute; empty: no cache
  std::unique_ptr<FileSystem> place_;  // does not follow a link with the name of the file
  std::unique_ptr<ListingFile> file_;
  std::map<std::string, Folder> folders_;  // by absolute path
  std::optional<int64_t> started_;         // nanoseconds: before the first folder was listed anew
  uint64_t held_ = 0;                      // bytes of the blocks in memory
  bool is_loaded_ = false, is_writable_ = true, is_changed_ = false;
  bool told_kind_ = false, told_damaged_ = false;
};

}  // namespace binade::data
