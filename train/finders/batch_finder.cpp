#include <binade/core/device/device_memory.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_limit.h>
#include <binade/core/observe/byte_text.h>
#include <binade/train/finders/batch_finder.h>

#include <algorithm>
#include <cmath>

namespace binade::train {
namespace {

void reset_peak(Device device) {
  device.is_cpu() ? reset_peak_memory() : reset_peak_memory(device);
}
int64_t allocated_in(Device device) {
  return device.is_cpu() ? memory_stats().allocated : memory_stats(device).allocated;
}
int64_t peak_in(Device device) {
  return device.is_cpu() ? memory_stats().peak : memory_stats(device).peak;
}
void give_back(Device device) { device.is_cpu() ? empty_cache() : empty_cache(device); }

std::string bytes_words(int64_t bytes) { return byte_text(static_cast<double>(bytes)); }

// Tries sizes by whole steps, each from the same state.
class Trials {
 public:
  Trials(const FinderParts& parts, const BatchMaker& batches, const BatchFinderOptions& options)
      : parts_(parts), batches_(batches), options_(options), device_(parts.optimizer.device()) {}

  // Runs two steps, because memory that the first one allocates may stay for the second.
  BatchTrial run(int64_t size, const MemoryModel& model, int64_t limit) const {
    BatchTrial trial{.batch = size, .forecast = model.at(size).peak + held(size)};
    const int64_t before = allocated_in(device_);
    StateSnapshot snapshot(parts_);
    const int64_t copies = allocated_in(device_) - before;
    parts_.model.train();
    try {
      const data::Batch batch = batches_.make(size).to(device_);
      reset_peak(device_);
      train_step(parts_, batch);
      train_step(parts_, batch);
      trial.peak = peak_in(device_) - copies + held(size);
      trial.fits = trial.peak <= limit;
      trial.reason = trial.fits ? "" : "over the limit";
    } catch (const OutOfMemory& error) {
      trial.reason = error.what();
    }
    snapshot.restore();
    if (!trial.fits) {
      give_back(device_);
    }
    return trial;
  }

 private:
  // Batches that the loader holds on the CPU while the step runs there, too.
  int64_t held(int64_t size) const {
    const double bytes = batches_.bytes_per_sample() * static_cast<double>(size);
    return device_.is_cpu() ? options_.batches_held * std::llround(bytes) : 0;
  }

  FinderParts parts_;
  const BatchMaker& batches_;
  BatchFinderOptions options_;
  Device device_;
};

void check_options(const BatchFinderOptions& o) {
  check(o.limit >= 0, "find_batch: got a limit of ", o.limit, " bytes, expected 0 or more");
  check(o.share > 0 && o.share <= 1, "find_batch: got share ", o.share, ", expected (0, 1]");
  check(o.multiple > 0 && o.most >= o.multiple, "find_batch: got sizes up to ", o.most,
        " in multiples of ", o.multiple, ", expected a multiple from 1 to the largest size");
}

}  // namespace

FoundBatch find_batch(const FinderParts& parts, const BatchMaker& batches,
                      const BatchFinderOptions& options) {
  check_options(options);
  const Device device = parts.optimizer.device();
  FoundBatch found{.limit = options.limit, .limit_reason = "BatchFinderOptions::limit"};
  if (found.limit == 0) {
    const MemoryRoom room = memory_room(device);
    found.limit = static_cast<int64_t>(options.share * static_cast<double>(room.bytes));
    found.limit_reason = text(options.share, " of ", room.reason);
  }
  MemoryModel model = measure_memory(parts, batches, std::min<int64_t>(options.multiple, 8));
  const Trials trials(parts, batches, options);
  const auto rounded = [&](int64_t size) {
    return std::min(size, options.most) / options.multiple * options.multiple;
  };
  // A forecast from larger probes is better: repeats until the size is at most four times theirs.
  int64_t size = rounded(model.largest_batch(found.limit));
  for (int64_t probe = options.multiple; size / 4 > probe && size > 2 * options.multiple;) {
    probe = std::max<int64_t>(size / 4, 1);
    model = measure_memory(parts, batches, probe);
    size = rounded(model.largest_batch(found.limit));
  }
  // Searches from both sides for the border between a size that fits and one that does not.
  int64_t bad = options.most + options.multiple;
  size = std::max(size, options.multiple);
  while (size > found.batch && size < bad) {
    found.trials.push_back(trials.run(size, model, found.limit));
    if (found.trials.back().fits) {
      found.batch = size;
      size = rounded(size + options.multiple);
    } else {
      bad = size;
      // Goes back by the share by which the peak exceeds the limit, at least by one step.
      const BatchTrial& trial = found.trials.back();
      const double over = trial.peak > found.limit
                              ? static_cast<double>(found.limit) / static_cast<double>(trial.peak)
                              : 0.9;
      const auto back = rounded(static_cast<int64_t>(static_cast<double>(size) * over));
      size = std::max(std::min(back, size - options.multiple), found.batch + options.multiple);
      size = size == bad ? found.batch : size;
      if (size <= 0) {
        break;
      }
    }
  }
  if (found.batch > 0) {
    found.is_most = found.batch == rounded(options.most);
    found.forecast = model.at(found.batch);
  }
  return found;
}

FoundBatch find_batch(const FinderParts& parts, data::Loader& loader, BatchFinderOptions options) {
  options.batches_held = loader.options().prefetch;
  if (loader.samples_per_epoch() > 0) {  // a larger batch has no samples
    options.most = std::max(std::min(options.most, loader.samples_per_epoch()), options.multiple);
  }
  return find_batch(parts, BatchMaker::largest(loader, options.look), options);
}

std::string to_string(const FoundBatch& found) {
  std::string words = found.batch == 0 ? text("no batch fits into ", bytes_words(found.limit))
                                       : text("batch ", found.batch,
                                              found.is_most ? ", the largest size tried, fits into "
                                                            : " is the largest that fits into ",
                                              bytes_words(found.limit));
  words += text(" (", found.limit_reason, ")\n");
  for (const BatchTrial& trial : found.trials) {
    words += text("  tried ", trial.batch, ": ",
                  trial.peak > 0 ? text("peak ", bytes_words(trial.peak), ", forecast ",
                                        bytes_words(trial.forecast))
                                 : text("forecast ", bytes_words(trial.forecast)),
                  trial.fits ? "" : ", " + trial.reason, "\n");
  }
  return words + (found.batch > 0 ? to_string(found.forecast) + "\n" : "");
}

}  // namespace binade::train
