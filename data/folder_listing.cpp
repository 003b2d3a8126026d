#include <binade/core/observe/warning.h>
#include <binade/data/folder_listing_internal.h>
#include <binade/data/listing/listing_cache_internal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

// The kind of an entry, through links; only links and odd entries need a system call.
std::string kind_of(const DirectoryEntry& entry, const std::string& path) {
  return entry.is_file ? "a regular file" : entry.is_directory ? "a directory" : file_kind(path);
}

}  // namespace

bool folder_exists(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_image_extension(const std::string& name) {
  constexpr std::array<std::string_view, 12> kExtensions = {".jpg", ".jpeg", ".png", ".bmp",
                                                            ".ppm", ".pgm",  ".pbm", ".pnm",
                                                            ".pam", ".tga",  ".gif", ".webp"};
  std::string extension = fs::path(name).extension().native();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

FolderListing::FolderListing(std::string root, OutsideLinks outside, ListingCache* listings)
    : root_(std::move(root)), outside_(outside), listings_(listings) {
  check(folder_exists(root_), root_, ": no such folder");
  std::error_code error;
  real_root_ = fs::canonical(root_, error).native();
  check(!error, root_, ": cannot follow its links: ", error.message());
  if (listings_ != nullptr) {
    listings_->keep_out_of(real_root_);
  }
}

std::vector<DirectoryEntry> FolderListing::list(const std::string& folder) {
  return listings_ != nullptr ? listings_->list(folder) : list_directory(folder);
}

void FolderListing::Noted::add(const std::string& what) {
  constexpr int64_t kShown = 3;
  if (count++ < kShown) {
    first += (first.empty() ? "" : ", ") + what;
  }
}

void FolderListing::note_odd(const std::string& path, const std::string& kind) {
  odd_.add(text(path, " (", kind, ")"));
}

std::vector<std::string> FolderListing::class_folders(const std::string& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list(folder)) {
    const std::string path = folder + "/" + entry.name, kind = kind_of(entry, path);
    if (entry.name[0] == '.') {
      continue;
    }
    if (kind == "a directory") {
      check_link(path);
      names.push_back(entry.name);
    } else if (kind != "a regular file") {
      note_odd(path, kind);
    } else if (has_image_extension(entry.name)) {
      unknown_.add(text(path, " (outside the class folders)"));
    }
  }
  check(!names.empty(), folder, ": no class folders, expected one folder of images per class");
  return names;
}

std::vector<std::string> FolderListing::images(const std::string& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list(folder)) {
    const std::string path = folder + "/" + entry.name, kind = kind_of(entry, path);
    const bool is_image = has_image_extension(entry.name);
    if (kind != "a regular file" && (is_image || kind != "a directory")) {
      note_odd(path, kind);
    } else if (kind != "a regular file" || !is_image) {
      unknown_.add(path);
    } else {
      if (!entry.is_file) {
        check_link(path);
      }
      names.push_back(entry.name);
    }
  }
  return names;
}

void FolderListing::check_link(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) {
    return;
  }
  const std::string target = fs::canonical(path, error).native();
  check(!error, path, ": cannot follow the link: ", error.message());
  if (target == real_root_ || target.starts_with(real_root_ == "/" ? "/" : real_root_ + "/")) {
    return;
  }
  check(outside_ == OutsideLinks::follow, path, ": the link leads to ", target,
        ", which is outside of ", root_, "; copy the file there, or allow outside links");
  outside_links_.add(text(path, " -> ", target));
}

void FolderListing::report() const {
  const auto note = [&](const Noted& noted, const char* what) {
    if (noted.count > 0) {
      warn(text(root_, ": ", noted.count, what, noted.first,
                noted.first.empty() || noted.count <= 3 ? "" : ", ..."));
    }
  };
  note(odd_, " entries are no regular files and were left out: ");
  note(unknown_,
       " entries are not in a class folder or have no extension of an image, and were "
       "left out: ");
  note(outside_links_, " links lead out of the data folder and were followed: ");
}

}  // namespace binade::data
