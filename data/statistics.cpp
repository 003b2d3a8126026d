// Mean and deviation over a dataset. All sums are unsigned 64-bit integers: exact in any order, so
// threads may take any part. 2^64 holds the squares of 2.8e14 values.
#include <binade/core/io/file_system.h>
#include <binade/data/dataset.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace binade::data {
namespace {

struct Sums {
  std::vector<uint64_t> sum, squares;  // [channels]
  uint64_t pixels = 0;
  int64_t samples = 0, bad = 0;
  int min_height = std::numeric_limits<int>::max(), max_height = 0;
  int min_width = std::numeric_limits<int>::max(), max_width = 0;

  explicit Sums(size_t channels) : sum(channels), squares(channels) {}

  void add(const Image& image) {
    const size_t channels = sum.size();
    const size_t count = image.pixels.size();
    for (size_t c = 0; c < channels; ++c) {
      uint64_t total = 0, square = 0;
      for (size_t i = c; i < count; i += channels) {
        const uint64_t value = image.pixels[i];
        total += value;
        square += value * value;
      }
      sum[c] += total;
      squares[c] += square;
    }
    pixels += count / channels;
    ++samples;
    min_height = std::min(min_height, image.height);
    max_height = std::max(max_height, image.height);
    min_width = std::min(min_width, image.width);
    max_width = std::max(max_width, image.width);
  }

  void add(const Sums& other) {
    for (size_t c = 0; c < sum.size(); ++c) {
      sum[c] += other.sum[c];
      squares[c] += other.squares[c];
    }
    pixels += other.pixels;
    samples += other.samples;
    bad += other.bad;
    min_height = std::min(min_height, other.min_height);
    max_height = std::max(max_height, other.max_height);
    min_width = std::min(min_width, other.min_width);
    max_width = std::max(max_width, other.max_width);
  }
};

void add_sample(const Dataset& dataset, int64_t index, bool skip_bad, Sums& sums) {
  try {
    const Sample sample = dataset.get(index);
    check(sample.image.channels == static_cast<int>(sums.sum.size()), dataset.describe(index),
          ": got ", sample.image.channels, " channels, expected ", sums.sum.size());
    sums.add(sample.image);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    const auto* file = dynamic_cast<const FileError*>(&error);
    if (!skip_bad || (file && file->is_out_of_resources())) {
      throw;
    }
    ++sums.bad;
  }
}

// The number of channels that the dataset declares, else that of its first readable image.
int channels_of(const Dataset& dataset, bool skip_bad) {
  if (dataset.channels() > 0) {
    return dataset.channels();
  }
  for (int64_t i = 0; i < dataset.size() && dataset.channels() == kUnknownChannels; ++i) {
    Sample sample;
    try {
      sample = dataset.get(i);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error&) {
      if (!skip_bad) {
        throw;
      }
      continue;
    }
    check(sample.image.channels > 0, "compute_mean_std: ", dataset.describe(i),
          " has no image, expected one: only images have a mean per channel");
    return sample.image.channels;
  }
  fail("compute_mean_std: got no readable image of ", dataset.size(), " samples");
}

}  // namespace

DatasetStatistics compute_mean_std(const Dataset& dataset, bool skip_bad) {
  const auto channels = static_cast<size_t>(channels_of(dataset, skip_bad));
  Sums all(channels);
  std::mutex mutex;
  constexpr int64_t kGrain = 32;
  kernels::parallel_for(dataset.size(), kGrain, [&](int64_t begin, int64_t end) {
    Sums part(channels);
    for (int64_t i = begin; i < end; ++i) {
      add_sample(dataset, i, skip_bad, part);
    }
    std::lock_guard lock(mutex);
    all.add(part);
  });
  check(all.samples > 0 && all.pixels > 0, "compute_mean_std: no readable sample of ",
        dataset.size());

  DatasetStatistics out;
  const auto pixels = static_cast<double>(all.pixels);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(all.sum[c]) / pixels;
    const double variance = static_cast<double>(all.squares[c]) / pixels - mean * mean;
    // The difference of two numbers up to 65025: below 1e-9 it is rounding.
    const double deviation = variance > 1e-9 ? std::sqrt(variance) / 255 : 1;
    out.mean.push_back(static_cast<float>(mean / 255));
    out.deviation.push_back(static_cast<float>(deviation));
  }
  out.min_height = all.min_height;
  out.max_height = all.max_height;
  out.min_width = all.min_width;
  out.max_width = all.max_width;
  out.samples = all.samples;
  out.bad_files = all.bad;
  return out;
}

}  // namespace binade::data
