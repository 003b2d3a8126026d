#include <binade/core/io/file_system.h>
#include <binade/data/augment/augment.h>
#include <binade/data/decode.h>
#include <binade/data/transforms.h>
#include <binade/train/classifier_data.h>

#include <unistd.h>

namespace binade::train {
namespace {

data::Transform augmentation(Augment augment, int height, int width) {
  std::vector<data::Transform> steps;
  if (augment != Augment::none) {
    steps.push_back(data::random_crop(height, width, std::max(1, std::min(height, width) / 8)));
  }
  if (augment != Augment::none && augment != Augment::crop) {
    steps.push_back(data::random_horizontal_flip());
  }
  switch (augment) {
    case Augment::trivial: steps.push_back(data::trivial_augment_wide()); break;
    case Augment::rand: steps.push_back(data::rand_augment()); break;
    case Augment::aug_mix: steps.push_back(data::aug_mix()); break;
    default: break;
  }
  return steps.empty() ? data::Transform() : data::sequence(std::move(steps));
}

data::Transform chain(const data::Transform& first, const data::Transform& second) {
  return first && second ? data::sequence({first, second}) : first ? first : second;
}

// Reads every image of a part once, so that a bad file is an error before training, not after it.
void check_readable(const std::shared_ptr<const data::Dataset>& part,
                    const data::DatasetStatistics& train, const ClassifierDataOptions& options) {
  if (!part || part->in_memory()) {
    return;
  }
  const data::DatasetStatistics own = data::compute_mean_std(*part);
  check(options.image_size > 0 || !train.one_size() ||
            (own.one_size() && own.min_height == train.min_height &&
             own.min_width == train.min_width),
        options.path, ": got validation or test images from ", own.min_width, "x", own.min_height,
        " to ", own.max_width, "x", own.max_height, " pixels, but training images of ",
        train.max_width, "x", train.max_height, "; give --image-size N to resize them to one size");
}

}  // namespace

const char* to_string(Augment augment) {
  constexpr const char* kName[] = {"auto",    "none",        "crop",  "crop-flip",
                                   "trivial", "randaugment", "augmix"};
  return kName[static_cast<int>(augment)];
}

ClassifierData open_classifier_data(const ClassifierDataOptions& options) {
  check(options.validation_split >= 0 && options.validation_split < 1, "validation split: got ",
        options.validation_split, ", expected 0 up to but not 1");
  const data::TrainTest parts = data::open_dataset(options.path, options.format,
                                                   {.seed = options.seed,
                                                    .checksums = options.checksums,
                                                    .outside_links = options.outside_links,
                                                    .listing_cache = options.listing_cache});
  data::Split split{parts.train, nullptr};
  if (options.validation_split > 0) {
    split = data::split_dataset(parts.train, options.validation_split, options.seed);
    check(split.first->size() > 0 && split.second->size() > 0, options.path, ": got ",
          parts.train->size(), " training samples, expected enough for a validation split of ",
          options.validation_split);
  }
  const data::DatasetStatistics statistics = data::compute_mean_std(*split.first);
  check_readable(split.second, statistics, options);
  check_readable(parts.test, statistics, options);
  check(options.image_size > 0 || statistics.one_size(), options.path, ": got images from ",
        statistics.min_width, "x", statistics.min_height, " to ", statistics.max_width, "x",
        statistics.max_height, " pixels; give --image-size N to resize them to one size");
  ClassifierData out;
  out.class_names = parts.train->class_names();
  out.channels = parts.train->channels();
  out.height = options.image_size > 0 ? options.image_size : statistics.max_height;
  out.width = options.image_size > 0 ? options.image_size : statistics.max_width;
  out.mean = statistics.mean;
  out.deviation = statistics.deviation;
  out.augment = options.augment != Augment::automatic ? options.augment
                : out.channels == 3                   ? Augment::crop_flip
                                                      : Augment::none;
  const bool resizing = options.image_size > 0;
  const data::Transform fit = resizing ? data::resize(out.height, out.width) : data::Transform();
  if (options.workers != 0) {
    out.pool = std::make_shared<data::WorkerPool>(options.workers);
  }
  data::LoaderOptions loader{
      .batch = options.batch,
      .workers = options.workers == 0 ? 0 : -1,
      .pool = out.pool,
      .seed = options.seed,
      .transform = chain(fit, augmentation(out.augment, out.height, out.width)),
      .mean = out.mean,
      .deviation = out.deviation,
      .device = options.device,
      .shard = options.shard,
      .shard_count = options.shard_count};
  out.train_samples = split.first->size();
  out.train = std::make_unique<data::Loader>(split.first, loader);
  loader.transform = fit;
  loader.shuffle = false;
  loader.uneven_shards = data::UnevenShards::keep;
  loader.batch = std::max<int64_t>(options.batch, 256);
  if (split.second) {
    out.validation = std::make_unique<data::Loader>(split.second, loader);
  }
  out.test = std::make_unique<data::Loader>(parts.test, loader);
  return out;
}

Tensor ClassifierData::read_image(const std::string& path) const {
  data::Image image = data::read_image(path, {.channels = channels});
  if (image.height != height || image.width != width) {
    image = data::resize_image(image, height, width);
  }
  const Dims sizes{1, channels, height, width};
  Tensor x = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  data::Normalizer(channels, mean, deviation)
      .apply(image.pixels.data(), x.data<float>(), int64_t(height) * width);
  return x;
}

}  // namespace binade::train
