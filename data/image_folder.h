// Image folders: DIR/train/<class>/* with DIR/test/<class>/* (or DIR/val), or DIR/<class>/* split
// by a hash of seed and path. Classes and files are sorted bytewise, so labels do not depend on the
// file system.
//
// warn() reports the entries left out, one line per reason with the number and the first names:
// entries with an image's name that are no regular file (a FIFO, a folder, a link to nothing), and
// files without an image's extension. If there is a checksum manifest (data/checksums.h), its list
// of images must match the folder, and every file is compared with it when it is read.
#pragma once
#include <binade/data/checksums.h>
#include <binade/data/dataset.h>
#include <binade/data/decode.h>
#include <binade/data/idx.h>
#include <binade/data/listing/listing_cache.h>

#include <string>

namespace binade::data {

// Links to files outside the data folder are followed, with one warning that counts them, or
// refused when the folder is opened.
enum class OutsideLinks { follow, refuse };

struct ImageFolderOptions {
  uint64_t seed = 0;        // for the split of DIR/<class>/*
  double test_share = 0.1;  // share of the test part
  DecodeOptions decode = {.channels = 3};
  Checksums checksums = Checksums::if_present;
  OutsideLinks outside_links = OutsideLinks::follow;
  ListingCacheOptions listing_cache = {};  // of image folders; without a file: none
};

class FolderListing;
class ListingCache;

class ImageFolder : public Dataset {
 public:
  // Lists one part of the folder. Throws Error if the folder is missing, has no class folders, a
  // class has no images, test has a class that train does not have, or the list of images
  // differs from the manifest's.
  ImageFolder(const std::string& directory, Part part, ImageFolderOptions options = {});
  // The same with a cache that both parts use.
  ImageFolder(const std::string& directory, Part part, ImageFolderOptions options,
              ListingCache& listings);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index) const override;
  Sample get_for(int64_t index, ImageRequest& request) const override;
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override;
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override;
  int64_t class_count() const override { return static_cast<int64_t>(classes_.size()); }
  std::vector<std::string> class_names() const override { return classes_; }
  int channels() const override { return options_.decode.channels; }
  std::string describe(int64_t index) const override;
  uint64_t id(int64_t index) const override;  // hash of CLASS/FILE
  std::optional<int64_t> label(int64_t index) const override { return file_at(index).label; }
  // Number of entries left out because of their extension or kind.
  int64_t ignored_files() const { return ignored_; }

 private:
  struct File {
    std::string name;  // relative to root_
    int64_t label;
    std::optional<Checksum> sum = {};
  };
  std::vector<uint8_t> read_bytes(const File& file, const std::string& path) const;
  void list_class(FolderListing& listing, const std::string& name, int64_t label);
  void use_manifest(const std::string& directory);
  void keep_part(Part part);
  const File& file_at(int64_t index) const;
  std::string path_of(const File& file) const;

  std::string root_;  // DIR, DIR/train, DIR/test or DIR/val
  ImageFolderOptions options_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  int64_t ignored_ = 0;
};

enum class Format { automatic, idx, folder, store, cifar, tar };

struct TrainTest {
  std::shared_ptr<const Dataset> train, test;
  Format format;
};

// Both parts of a directory. `automatic` looks, in this order, for a packed store
// (data/store/store_dataset.h), the four idx files, CIFAR's binary files (data/sets/cifar.h), tar
// shards (data/sets/tar_dataset.h) and an image folder; the error lists what it looked for.
// checksums and outside_links hold for idx files and image folders. A store or tar shards without
// parts are split by a hash of the seed and the sample.
TrainTest open_dataset(const std::string& directory, Format format = Format::automatic,
                       const ImageFolderOptions& options = {});

}  // namespace binade::data
