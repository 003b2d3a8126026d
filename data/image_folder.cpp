#include <binade/core/io/hash64.h>
#include <binade/data/folder_listing_internal.h>
#include <binade/data/idx.h>
#include <binade/data/listing/listing_cache_internal.h>
#include <binade/data/window/image_request.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

// Returns DIR/test, else DIR/val, else an empty path.
fs::path test_folder(const fs::path& directory) {
  for (const char* name : {"test", "val"}) {
    if (folder_exists(directory / name)) {
      return directory / name;
    }
  }
  return {};
}

constexpr uint64_t kFolderSplitKey = 0x464F'4C44'4552'5350;

// A uniform number in [0, 1) that depends on the seed and the name only (FNV-1a and Philox).
double split_position(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name) {
    hash = (hash ^ c) * 0x100000001B3;
  }
  return static_cast<double>(philox::generate(seed ^ kFolderSplitKey, hash)[0]) * 0x1p-32;
}

}  // namespace

ImageFolder::ImageFolder(const std::string& directory, Part part, ImageFolderOptions options)
    : ImageFolder(directory, part, options,
                  *std::make_unique<ListingCache>(options.listing_cache)) {}

ImageFolder::ImageFolder(const std::string& directory, Part part, ImageFolderOptions options,
                         ListingCache& listings)
    : root_(directory), options_(std::move(options)) {
  check(options_.decode.channels == 1 || options_.decode.channels == 3,
        "image folder: got channels ", options_.decode.channels, ", expected 1 or 3");
  check(options_.test_share > 0 && options_.test_share < 1, "image folder: got test_share ",
        options_.test_share, ", expected more than 0 and less than 1");
  FolderListing listing(directory, options_.outside_links, &listings);
  const fs::path train = fs::path(directory) / "train", test = test_folder(directory);
  const bool has_parts = folder_exists(train) || !test.empty();
  if (has_parts) {
    check(folder_exists(train), directory, ": has ", test.filename().native(),
          " but no train folder");
    check(!test.empty(), directory, ": has train but neither test nor val folder");
    root_ = (part == Part::train ? train : test).native();
    listing.check_link(root_);
  }
  const std::vector<std::string> present = listing.class_folders(root_);
  classes_ = has_parts && part == Part::test
                 ? FolderListing(directory, options_.outside_links, &listings).class_folders(train)
                 : present;
  for (const std::string& name : present) {
    const auto found = std::lower_bound(classes_.begin(), classes_.end(), name);
    check(found != classes_.end() && *found == name, root_, ": class ", name, " has no folder in ",
          train.native());
    list_class(listing, name, found - classes_.begin());
  }
  listings.save();
  ignored_ = listing.ignored();
  if (has_parts || part == Part::train) {  // both parts of DIR/<class>/* list the same entries
    listing.report();
  }
  use_manifest(directory);
  if (!has_parts) {
    keep_part(part);
  }
}

void ImageFolder::list_class(FolderListing& listing, const std::string& name, int64_t label) {
  const std::string folder = root_ + "/" + name;
  const std::vector<std::string> images = listing.images(folder);
  for (const std::string& file : images) {
    files_.push_back({name + "/" + file, label});
  }
  check(!images.empty(), folder,
        ": class folder without images, expected jpg, jpeg, png, bmp, ppm, pgm, pbm, pnm, pam, "
        "tga, gif or "
        "webp files");
}

// Attaches the checksums of the manifest to the files. The manifest must list exactly the images
// that exist.
void ImageFolder::use_manifest(const std::string& directory) {
  if (options_.checksums == Checksums::ignore) {
    return;
  }
  const std::optional<ChecksumManifest> manifest = ChecksumManifest::find(directory);
  check(manifest || options_.checksums != Checksums::require, directory, ": no ", kChecksumFile,
        " in the folder or above; write one with: binade checksum ", directory);
  if (!manifest) {
    return;
  }
  std::vector<std::string> differences;
  std::set<std::string, std::less<>> here;
  for (File& file : files_) {
    const ChecksumEntry* entry = manifest->find_file(path_of(file));
    if (entry != nullptr) {
      file.sum = entry->sum;
    } else {
      differences.push_back(file.name + " is not listed");
    }
    here.insert(file.name);
  }
  const std::string below =
      manifest->name_of(root_) + (manifest->name_of(root_).empty() ? "" : "/");
  for (const ChecksumEntry& entry : manifest->entries()) {
    const std::string_view name =
        std::string_view(entry.name)
            .substr(entry.name.starts_with(below) ? below.size() : entry.name.size());
    if (std::count(name.begin(), name.end(), '/') == 1 && name[0] != '.' &&
        has_image_extension(std::string(name)) && !here.contains(name)) {
      differences.push_back(text(name, " is missing"));
    }
  }
  if (!differences.empty()) {
    const size_t shown = std::min<size_t>(differences.size(), 5);
    std::string list;
    for (size_t i = 0; i < shown; ++i) {
      list += (i == 0 ? "" : ", ") + differences[i];
    }
    fail(root_, ": ", differences.size(), " images differ from the list in ", manifest->path(),
         ": ", list, shown < differences.size() ? ", ..." : "",
         "; restore them, or accept the folder as it is: binade checksum ", manifest->directory(),
         " --update");
  }
}

void ImageFolder::keep_part(Part part) {
  std::vector<File> kept;
  for (size_t begin = 0, end = 0; begin < files_.size(); begin = end) {
    bool any_train = false;
    for (; end < files_.size() && files_[end].label == files_[begin].label; ++end) {
      any_train |= split_position(options_.seed, files_[end].name) >= options_.test_share;
    }
    for (size_t i = begin; i < end; ++i) {
      // A small class that would have no training image keeps all its images for training.
      const bool test =
          any_train && split_position(options_.seed, files_[i].name) < options_.test_share;
      if (test == (part == Part::test)) {
        kept.push_back(files_[i]);
      }
    }
  }
  check(!kept.empty(), root_, ": too few images for a ", part == Part::test ? "test" : "train",
        " part: ", files_.size(), " in all");
  files_ = std::move(kept);
}

std::string ImageFolder::path_of(const File& file) const {
  return (fs::path(root_) / file.name).native();
}

const ImageFolder::File& ImageFolder::file_at(int64_t index) const {
  check(index >= 0 && index < size(), root_, ": got index ", index, ", expected one of ", size());
  return files_[static_cast<size_t>(index)];
}

std::vector<uint8_t> ImageFolder::read_bytes(const File& file, const std::string& path) const {
  std::vector<uint8_t> bytes = read_file(path, options_.decode.limits.max_file_bytes);
  if (file.sum) {
    verify_checksum(path, *file.sum, bytes);
  }
  return bytes;
}

Sample ImageFolder::get(int64_t index) const {
  const File& file = file_at(index);
  const std::string path = path_of(file);
  return {decode_image(read_bytes(file, path), path, options_.decode), file.label};
}

Sample ImageFolder::get_for(int64_t index, ImageRequest& request) const {
  const File& file = file_at(index);
  const std::string path = path_of(file);
  return {request.decode(read_bytes(file, path), path, options_.decode), file.label};
}

std::optional<std::vector<uint8_t>> ImageFolder::encoded(int64_t index) const {
  const File& file = file_at(index);
  return read_bytes(file, path_of(file));
}

void ImageFolder::read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                               Sample& sample) const {
  const File& file = file_at(index);
  sample.image = request.decode(bytes, path_of(file), options_.decode);
  sample.label = file.label;
}

std::string ImageFolder::describe(int64_t index) const { return path_of(file_at(index)); }

uint64_t ImageFolder::id(int64_t index) const {
  Hash64 hash;
  hash.add(file_at(index).name);
  return hash.value();
}

}  // namespace binade::data
