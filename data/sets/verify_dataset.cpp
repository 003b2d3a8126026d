// Threads take ranges of samples. Results are stored by sample, so the report does not depend on
// the threads. Sums of pixels are exact integers.
#include <binade/core/io/file_system.h>
#include <binade/data/sample_internal.h>
#include <binade/data/sets/verify_dataset.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>

namespace binade::data {
namespace {

// The result of reading one sample.
struct Found {
  uint64_t hash = 0;  // of the pixels
  int height = 0, width = 0;
  std::string bad;  // the reason; empty if it was decoded
};

struct PixelSums {
  std::vector<uint64_t> sum, squares;
  uint64_t pixels = 0;

  void add(const Image& image) {
    const auto channels = static_cast<size_t>(image.channels);
    sum.resize(std::max(sum.size(), channels));
    squares.resize(sum.size());
    for (size_t c = 0; c < channels; ++c) {
      uint64_t total = 0, square = 0;
      for (size_t i = c; i < image.pixels.size(); i += channels) {
        const uint64_t value = image.pixels[i];
        total += value;
        square += value * value;
      }
      sum[c] += total;
      squares[c] += square;
    }
    pixels += image.pixels.size() / channels;
  }
  void add(const PixelSums& other) {
    sum.resize(std::max(sum.size(), other.sum.size()));
    squares.resize(sum.size());
    for (size_t c = 0; c < other.sum.size(); ++c) {
      sum[c] += other.sum[c];
      squares[c] += other.squares[c];
    }
    pixels += other.pixels;
  }
};

class Progress {
 public:
  Progress(const VerifyOptions& options, int64_t total) : options_(options), total_(total) {}

  void step() {
    constexpr std::chrono::milliseconds kPause(100);
    const std::scoped_lock lock(mutex_);
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    if (options_.on_progress && (done_ == total_ || now - last_ >= kPause)) {
      last_ = now;
      options_.on_progress(done_, total_);
    }
  }

 private:
  const VerifyOptions& options_;
  int64_t total_, done_ = 0;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_{};
};

Found look_at(const Dataset& part, int64_t index, PixelSums* sums) {
  Found found;
  try {
    const Sample sample = part.get(index);
    found.hash = content_hash({.image = sample.image});
    found.height = sample.image.height;
    found.width = sample.image.width;
    if (sums != nullptr && !sample.image.pixels.empty()) {
      sums->add(sample.image);
    }
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    const auto* file = dynamic_cast<const FileError*>(&error);
    if (file != nullptr && file->is_out_of_resources()) {
      throw;
    }
    found.bad = error.what();
  }
  return found;
}

std::vector<Found> look_at_all(const Dataset& part, Progress& progress, PixelSums* sums) {
  std::vector<Found> found(static_cast<size_t>(part.size()));
  std::mutex mutex;
  kernels::parallel_for(part.size(), 1, [&](int64_t begin, int64_t end) {
    PixelSums own;
    for (int64_t i = begin; i < end; ++i) {
      found[static_cast<size_t>(i)] = look_at(part, i, sums != nullptr ? &own : nullptr);
      progress.step();
    }
    if (sums != nullptr) {
      const std::scoped_lock lock(mutex);
      sums->add(own);
    }
  });
  return found;
}

DatasetPart describe_part(const Dataset& part, const std::string& name) {
  DatasetPart out{.name = name, .samples = part.size()};
  const std::vector<std::string> names = part.class_names();
  const auto classes = static_cast<size_t>(std::max<int64_t>(part.class_count(), 0));
  for (size_t c = 0; c < classes; ++c) {
    out.classes.emplace_back(c < names.size() ? names[c] : text(c), 0);
  }
  for (int64_t i = 0; i < part.size(); ++i) {
    const std::optional<int64_t> label = part.label(i);
    if (label && *label >= 0 && *label < std::ssize(out.classes)) {
      ++out.classes[static_cast<size_t>(*label)].second;
    }
  }
  return out;
}

// A decoded sample of a part.
struct Place {
  uint64_t hash;
  size_t part;
  int64_t index;
};

std::vector<DuplicateGroup> find_duplicates(const std::vector<const Dataset*>& parts,
                                            std::vector<Place> places) {
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.hash, a.part, a.index) < std::tie(b.hash, b.part, b.index);
  });
  std::vector<DuplicateGroup> groups;
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    while (end < places.size() && places[end].hash == places[begin].hash) {
      ++end;
    }
    if (end - begin == 1) {
      continue;
    }
    DuplicateGroup group;
    const Place& first = places[begin];
    for (size_t i = begin; i < end; ++i) {
      const Place& one = places[i];
      group.names.push_back(parts[one.part]->describe(one.index));
      group.across_parts |= one.part != first.part;
      group.has_several_labels |=
          parts[one.part]->label(one.index) != parts[first.part]->label(first.index);
    }
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const DuplicateGroup& a, const DuplicateGroup& b) {
    return std::tie(b.across_parts, a.names) < std::tie(a.across_parts, b.names);
  });
  return groups;
}

void set_statistics(const PixelSums& sums, DatasetReport& report) {
  const auto count = static_cast<double>(std::max<uint64_t>(sums.pixels, 1));
  for (size_t c = 0; c < sums.sum.size(); ++c) {
    constexpr double kWhite = 255;
    const double mean = static_cast<double>(sums.sum[c]) / count;
    const double square = static_cast<double>(sums.squares[c]) / count;
    report.mean.push_back(mean / kWhite);
    report.deviation.push_back(std::sqrt(std::max(square - mean * mean, 0.0)) / kWhite);
  }
}

}  // namespace

int64_t DatasetReport::leaks() const {
  return std::count_if(duplicates.begin(), duplicates.end(),
                       [](const DuplicateGroup& group) { return group.across_parts; });
}

bool DatasetReport::is_clean() const { return bad.empty() && leaks() == 0; }

DatasetReport verify_dataset(const std::string& directory, const VerifyOptions& options) {
  const TrainTest opened = open_dataset(directory, options.format, options.folder);
  const std::vector<const Dataset*> parts{opened.train.get(), opened.test.get()};
  const char* const names[] = {"train", "test"};
  Progress progress(options, parts[0]->size() + parts[1]->size());
  DatasetReport report;
  PixelSums sums;
  std::vector<Place> places;
  for (size_t p = 0; p < parts.size(); ++p) {
    report.parts.push_back(describe_part(*parts[p], names[p]));
    const std::vector<Found> found = look_at_all(*parts[p], progress, p == 0 ? &sums : nullptr);
    for (int64_t i = 0; i < std::ssize(found); ++i) {
      const Found& one = found[static_cast<size_t>(i)];
      if (!one.bad.empty()) {
        report.bad.push_back({names[p], parts[p]->describe(i), one.bad});
        continue;
      }
      ++report.decoded;
      ++report.sizes[{one.height, one.width}];
      places.push_back({one.hash, p, i});
    }
    if (const auto* folder = dynamic_cast<const ImageFolder*>(parts[p])) {
      report.ignored_files += folder->ignored_files();
    }
  }
  report.duplicates = find_duplicates(parts, std::move(places));
  set_statistics(sums, report);
  return report;
}

}  // namespace binade::data
