#include <binade/core/io/hash64.h>
#include <binade/data/idx.h>
#include <binade/data/image_folder.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

bool folder_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_image_extension(const std::string& name) {
  constexpr std::array<std::string_view, 8> kExtensions = {".jpg", ".jpeg", ".png", ".bmp",
                                                           ".ppm", ".pgm",  ".pnm", ".tga"};
  std::string extension = fs::path(name).extension().native();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

// The entries of a directory, sorted bytewise by name.
std::vector<fs::directory_entry> sorted_entries(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator iterator(directory, error);
  check(!error, directory.native(), ": cannot list the folder: ", error.message());
  std::vector<fs::directory_entry> entries;
  while (iterator != fs::directory_iterator()) {
    entries.push_back(*iterator);
    iterator.increment(error);
    check(!error, directory.native(), ": cannot list the folder: ", error.message());
  }
  // std::string compares unsigned bytes in any locale.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.path().filename().native() < b.path().filename().native();
  });
  return entries;
}

// The class folders of a directory: all but hidden ones.
std::vector<std::string> class_folders(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : sorted_entries(directory)) {
    const std::string name = entry.path().filename().native();
    if (name[0] != '.' && folder_exists(entry.path())) {
      names.push_back(name);
    }
  }
  check(!names.empty(), directory.native(),
        ": no class folders, expected one folder of images per class");
  return names;
}

// DIR/test, else DIR/val, else empty.
fs::path test_folder(const fs::path& directory) {
  for (const char* name : {"test", "val"}) {
    if (folder_exists(directory / name)) {
      return directory / name;
    }
  }
  return {};
}

constexpr uint64_t kSplitKey = 0x464F'4C44'4552'5350;

// Uniform in [0, 1), computed from seed and name only (FNV-1a, mixed by Philox).
double split_position(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name) {
    hash = (hash ^ c) * 0x100000001B3;
  }
  return static_cast<double>(philox::generate(seed ^ kSplitKey, hash)[0]) * 0x1p-32;
}

}  // namespace

ImageFolder::ImageFolder(const std::string& directory_name, Part part, ImageFolderOptions options)
    : root_(directory_name), options_(options) {
  const fs::path directory = directory_name;
  check(options_.decode.channels == 1 || options_.decode.channels == 3,
        "image folder: got channels ", options_.decode.channels, ", expected 1 or 3");
  check(options_.test_share > 0 && options_.test_share < 1, "image folder: got test_share ",
        options_.test_share, ", expected more than 0 and less than 1");
  check(folder_exists(directory), directory.native(), ": no such folder");
  const fs::path train = directory / "train", test = test_folder(directory);
  if (!folder_exists(train) && test.empty()) {
    classes_ = class_folders(directory);
    for (size_t i = 0; i < classes_.size(); ++i) {
      list_class(classes_[i], static_cast<int64_t>(i));
    }
    keep_part(part);
    return;
  }
  check(folder_exists(train), directory.native(), ": has ", test.filename().native(),
        " but no train folder");
  check(!test.empty(), directory.native(), ": has train but neither test nor val folder");
  classes_ = class_folders(train);
  root_ = (part == Part::train ? train : test).native();
  const std::vector<std::string> present = part == Part::train ? classes_ : class_folders(test);
  for (const std::string& name : present) {
    const auto found = std::lower_bound(classes_.begin(), classes_.end(), name);
    check(found != classes_.end() && *found == name, root_, ": class ", name, " has no folder in ",
          train.native());
    list_class(name, found - classes_.begin());
  }
}

void ImageFolder::list_class(const std::string& name, int64_t label) {
  const size_t before = files_.size();
  for (const auto& entry : sorted_entries(fs::path(root_) / name)) {
    const std::string file = entry.path().filename().native();
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && has_image_extension(file)) {
      files_.push_back({name + "/" + file, label});
    } else {
      ++ignored_;
    }
  }
  check(files_.size() > before, root_ + "/" + name,
        ": class folder without images, expected jpg, jpeg, png, bmp, ppm, pgm, pnm or tga files");
}

void ImageFolder::keep_part(Part part) {
  std::vector<File> kept;
  for (size_t begin = 0, end = 0; begin < files_.size(); begin = end) {
    bool any_train = false;
    for (; end < files_.size() && files_[end].label == files_[begin].label; ++end) {
      any_train |= split_position(options_.seed, files_[end].name) >= options_.test_share;
    }
    for (size_t i = begin; i < end; ++i) {
      // A small class that would get no training image keeps all of them for training.
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

Sample ImageFolder::get(int64_t index) const {
  const File& file = file_at(index);
  return {read_image(path_of(file), options_.decode), file.label};
}

std::string ImageFolder::describe(int64_t index) const { return path_of(file_at(index)); }

uint64_t ImageFolder::id(int64_t index) const {
  Hash64 hash;
  hash.add(file_at(index).name);
  return hash.value();
}

TrainTest open_dataset(const std::string& directory, Format format,
                       const ImageFolderOptions& options) {
  check(folder_exists(directory), directory, ": no such folder");
  if (format == Format::idx || (format == Format::automatic && has_idx_files(directory))) {
    return {std::make_shared<IdxDataset>(directory, Part::train),
            std::make_shared<IdxDataset>(directory, Part::test), Format::idx};
  }
  try {
    return {std::make_shared<ImageFolder>(directory, Part::train, options),
            std::make_shared<ImageFolder>(directory, Part::test, options), Format::folder};
  } catch (Error& error) {
    if (format == Format::automatic) {
      error.add_context(
          "(looked for {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz], then for "
          "train/<class>/* with test/<class>/* or val/<class>/*, then for <class>/*)");
    }
    throw;
  }
}

}  // namespace binade::data
