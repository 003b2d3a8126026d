// FolderListing: the entries of an image folder, and a report of entries that are left out and of
// links that lead outside. Internal to the image folder.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/data/image_folder.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::data {

class ListingCache;

bool folder_exists(const std::string& path);

class FolderListing {
 public:
  // `listings`: lists the folders, if given. Throws Error if there is no such folder.
  FolderListing(std::string root, OutsideLinks outside, ListingCache* listings = nullptr);

  // Names of the class folders in `folder`, sorted bytewise: all folders but hidden ones.
  std::vector<std::string> class_folders(const std::string& folder);
  // Names of the images in `folder`: regular files, also through links, with an image's extension.
  std::vector<std::string> images(const std::string& folder);
  // Notes a link whose target is outside the root; an error if the option says so.
  void check_link(const std::string& path);

  int64_t ignored() const { return odd_.count + unknown_.count; }
  // Gives one warning each, with the number and the first names, about entries that are no files,
  // files without an image's extension, and links that lead out of the root.
  void report() const;

 private:
  struct Noted {
    int64_t count = 0;
    std::string first;
    void add(const std::string& what);
  };
  std::vector<DirectoryEntry> list(const std::string& folder);
  void note_odd(const std::string& path, const std::string& kind);

  std::string root_, real_root_;
  OutsideLinks outside_;
  ListingCache* listings_;
  Noted odd_, unknown_, outside_links_;
};

bool has_image_extension(const std::string& name);

}  // namespace binade::data
