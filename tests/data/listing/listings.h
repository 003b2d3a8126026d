// A small image folder with links and odd entries, and its cache of listings.
#pragma once
#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/warning.h>
#include <binade/data/image_folder.h>
#include <binade/data/listing/listing_file_internal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/data/test_files.h"

namespace binade::data::test {

// What a reader of the folder sees: samples, classes, warnings, or the error.
struct SeenFolder {
  std::vector<std::string> files, classes, warnings;
  int64_t ignored = 0;
  std::string error;

  bool operator==(const SeenFolder&) const = default;
};

template <class F>
inline std::vector<std::string> warnings_of(F&& f) {
  std::vector<std::string> seen;
  const auto before = set_warning_handler([&](const std::string& text) { seen.push_back(text); });
  f();
  set_warning_handler(before);
  return seen;
}

class Listings : public testing::Test {
 protected:
  Listings() {
    for (const char* name : {"train/cat/1.jpg", "train/cat/2.jpg", "train/cat/notes.txt",
                             "train/dog/1.jpg", "train/dog/10.jpg", "test/cat/1.jpg"}) {
      add(name);
    }
    add("../elsewhere/1.jpg");
    fs::create_symlink("1.jpg", root() / "train/cat/link.jpg");
    fs::create_directory_symlink(folder_.path() / "elsewhere", root() / "train/bird");
    fs::create_symlink("nowhere", root() / "train/dog/dangling.jpg");
    EXPECT_EQ(::mkfifo((root() / "train/dog/fifo.jpg").c_str(), 0600), 0);
    settle();
  }

  fs::path root() const { return folder_.path() / "data"; }
  fs::path cache() const { return folder_.path() / "data.listing"; }
  void add(const std::string& name) const { write_file(root() / name, bytes_of("x")); }
  // Until a folder counts as settled.
  static void settle() { std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSettled)); }

  SeenFolder see(bool cached, Part part = Part::train,
                 OutsideLinks links = OutsideLinks::follow) const {
    SeenFolder seen;
    seen.warnings = warnings_of([&] {
      seen.error = error_of([&] {
        const ListingCacheOptions options{cached ? cache().native() : "", kSettled};
        const ImageFolder images(root(), part, {.outside_links = links, .listing_cache = options});
        for (int64_t i = 0; i < images.size(); ++i) {
          seen.files.push_back(text(images.describe(i), " ", *images.label(i)));
        }
        seen.classes = images.class_names();
        seen.ignored = images.ignored_files();
      });
    });
    return seen;
  }

  // Opens the folder with and without the cache; they must not differ. Returns what was seen.
  SeenFolder expect_same(OutsideLinks links = OutsideLinks::follow) const {
    const SeenFolder plain = see(false, Part::train, links), cached = see(true, Part::train, links);
    EXPECT_EQ(plain.files, cached.files);
    EXPECT_EQ(plain.classes, cached.classes);
    EXPECT_EQ(plain.warnings, cached.warnings);
    EXPECT_EQ(plain.error, cached.error);
    EXPECT_EQ(plain, cached);
    return plain;
  }

  std::vector<std::string> kept() const {
    std::vector<std::string> paths;
    const ListingFile file(cache());
    for (const ListedFolder& folder : file.folders()) {
      paths.push_back(fs::path(folder.path).lexically_relative(root()).native());
    }
    return paths;
  }

  // Changes a name within the file, and the checksums: the name is seen only if the file is used.
  void plant(const std::string& from, const std::string& to) const {
    const ListingFile file(cache());
    std::vector<ListedFolder> folders = file.folders();
    std::string blocks;
    for (ListedFolder& folder : folders) {
      auto entries = unpack_entries(file.path(), folder, file.block(folder));
      for (DirectoryEntry& entry : entries) {
        entry.name = entry.name == from ? to : entry.name;
      }
      const std::string block = pack_entries(entries);
      folder.bytes = block.size();
      folder.crc = crc32c(std::as_bytes(std::span(block.data(), block.size())));
      blocks += block;
    }
    write_file(cache(), bytes_of(listing_head(folders) + blocks));
  }
  bool sees(const std::string& name) const {
    const std::vector<std::string> files = see(true).files;
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return contains(file, name); });
  }
  std::vector<uint8_t> bytes() const { return binade::data::read_file(cache(), 1 << 20); }
  std::vector<std::string> names_beside() const {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : list_directory(folder_.path())) {
      names.push_back(entry.name);
    }
    return names;
  }

  static constexpr double kSettled = 0.05;
  const TemporaryFolder folder_;
};

}  // namespace binade::data::test
