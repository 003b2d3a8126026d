// The largest batch that fits into memory: estimated from small steps (train/finders/
// memory_forecast.h), then verified with whole steps, optimizer state and the largest samples.
//
//   const train::FoundBatch found = train::find_batch({.model = net, .optimizer = adam}, loader);
//
// Only a size that ran is returned. Model, optimizer and random numbers are restored bit for bit.
#pragma once
#include <binade/train/finders/memory_forecast.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::train {

struct BatchFinderOptions {
  // Bytes in tensors that a step may reach; 0: `share` of memory_room() of the model's device (RAM,
  // control group and set_memory_limit(), or the device's memory).
  int64_t limit = 0;
  double share = 0.9;               // leaves room for memory that the allocator does not count
  int64_t multiple = 1;             // of the size: 8 for tensor cores
  int64_t most = int64_t{1} << 16;  // of a loader at most its samples
  int64_t look = 16;  // batches of the loader among which the largest samples are sought; 0: all
  // The batches that the Loader prefetches, besides the batch of the step. They count if they are
  // in the same memory as the model. find_batch() sets this from a loader.
  int64_t batches_held = 0;
};

// A size that was tried by a whole step.
struct BatchTrial {
  int64_t batch = 0;
  int64_t peak = 0;         // bytes of the allocator
  int64_t forecast = 0;     // the same as forecast
  bool fits = false;        // it ran and was within the limit
  std::string reason = {};  // why not
};

struct FoundBatch {
  int64_t batch = 0;     // 0: not even `multiple` samples fit
  bool is_most = false;  // it is BatchFinderOptions::most: a larger one may fit, too
  int64_t limit = 0;     // bytes
  std::string limit_reason = {};
  std::vector<BatchTrial> trials = {};
  MemoryForecast forecast = {};  // of `batch`
};

// Throws what the step throws, except OutOfMemory. A size that fails leaves no memory reserved.
FoundBatch find_batch(const FinderParts& parts, const BatchMaker& batches,
                      const BatchFinderOptions& options = {});
// With the largest samples of the loader. Abandons an epoch in progress.
FoundBatch find_batch(const FinderParts& parts, data::Loader& loader,
                      BatchFinderOptions options = {});
std::string to_string(const FoundBatch& found);

}  // namespace binade::train
