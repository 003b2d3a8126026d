// Everything between a directory of labelled pictures and three loaders: opening, splitting,
// statistics of the training part, augmentation.
#pragma once
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>

#include <memory>
#include <string>

namespace binade::train {

enum class Augment {
  automatic,
  none,
  crop,
  crop_flip,
  trivial,  // crop_flip, then data::trivial_augment_wide
  rand,     // crop_flip, then data::rand_augment
  aug_mix   // crop_flip, then data::aug_mix
};          // automatic: crop_flip for colour, none for grey
const char* to_string(Augment augment);

struct ClassifierDataOptions {
  std::string path;
  data::Format format = data::Format::automatic;
  data::Checksums checksums = data::Checksums::if_present;
  data::OutsideLinks outside_links = data::OutsideLinks::follow;
  data::ListingCacheOptions listing_cache = {};  // of an image folder
  double validation_split = 0.1;                 // share of the training part; 0: no validation
  Augment augment = Augment::automatic;
  int image_size = 0;  // height and width to resize to; needed if sizes differ
  int64_t batch = 64;
  int workers = -1;  // as in data::LoaderOptions
  uint64_t seed = 0;
  Device device = {};  // of the batches
  // The shard of this rank. Training shards are padded to one size; validation and test shards are
  // not.
  int64_t shard = 0, shard_count = 1;
};

struct ClassifierData {
  std::unique_ptr<data::Loader> train, validation, test;  // validation may be null
  std::shared_ptr<data::WorkerPool> pool;                 // of all three; null without workers
  std::vector<std::string> class_names;
  int64_t train_samples = 0;  // of all shards
  int channels = 0, height = 0, width = 0;
  std::vector<float> mean, deviation;  // [channels], of the training part
  Augment augment = Augment::none;     // never automatic

  // An image file prepared as the loaders do: [1, C, H, W].
  Tensor read_image(const std::string& path) const;
};

// Throws if the data is missing or bad, or if sizes differ and no image_size is given.
ClassifierData open_classifier_data(const ClassifierDataOptions& options);

}  // namespace binade::train
