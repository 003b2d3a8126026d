// pack: stores a whole dataset for fast random access (data/store/store_dataset.h).
//
//   data::pack(data::ImageFolder("photos", data::Part::train), "photos-store",
//              {.images = data::PackImages::raw, .transform = data::resize_short_side(256)});
//   data::StoreDataset store("photos-store");
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/image_folder.h>
#include <binade/data/transforms.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::data {

// The form in which a store keeps an image.
enum class PackImages {
  keep,  // the file as it is, where the dataset has one and there is no transform; else raw pixels
  raw,   // pixels: large and fastest
  jpeg,  // a JPEG: the file itself if it is one and there is no transform
};

struct PackProgress {
  int64_t samples = 0, all_samples = 0, bytes = 0;
};

struct PackOptions {
  PackImages images = PackImages::keep;
  int quality = 95;          // of JPEG, 1 to 100
  Transform transform = {};  // of every image, once; null: none
  bool append = false;       // to the store in the folder, which must exist
  bool skip_bad = false;     // a sample that cannot be read is left out instead of an error
  int64_t shard_bytes = int64_t(1) << 30;
  std::function<void(const PackProgress&)> progress = {};  // called now and then; default: none
};

struct PackResult {
  int64_t samples = 0;           // stored by this call
  int64_t bytes = 0;             // of new shards
  std::vector<std::string> bad;  // what was left out, and why
};

// Reads all samples on all threads and writes them in their order. A new folder appears complete or
// not at all; an append adds all of the samples or none. When appending, class names that the store
// does not have are added behind those it has, and labels follow their names. Throws Error that
// names the sample if one cannot be read. Without append the folder must be empty or not exist,
// else it throws Error.
PackResult pack(DatasetPtr dataset, const std::string& directory, const PackOptions& options = {});

// DIRECTORY/train and DIRECTORY/test, which open_dataset(DIRECTORY) finds. Returns the sum of both.
// An error, or the death of the process at any moment, leaves both parts as they were or with all
// of their new samples.
PackResult pack(const TrainTest& parts, const std::string& directory,
                const PackOptions& options = {});

}  // namespace binade::data
