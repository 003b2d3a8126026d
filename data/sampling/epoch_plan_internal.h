// EpochPlan: decides which samples form a batch of one shard in one epoch. Internal to the loader.
#pragma once
#include <binade/data/loader.h>

#include <functional>

namespace binade::data {

// Every const function may be called from several threads at once.
class EpochPlan {
 public:
  // The positions of one batch in the order of the epoch: begin, begin + stride, ...
  struct Places {
    int64_t first;  // samples of this shard before the batch
    int64_t begin, stride, count;
    int64_t repeated = 0;  // so many of the last ones are in another shard, too
  };

  virtual ~EpochPlan() = default;
  virtual int64_t size() const = 0;                   // positions
  virtual int64_t batches() const = 0;                // of this shard
  virtual int64_t index(int64_t position) const = 0;  // of [0, size())
  virtual Places batch(int64_t number) const = 0;
};

// The plans of all epochs, and the data that they share.
class Plans {
 public:
  virtual ~Plans() = default;
  // Per epoch, for this shard.
  virtual int64_t samples() const = 0;
  virtual int64_t batches() const = 0;
  // The rest of an epoch, after its first `done` positions. Throws Error unless 0 <= done <= size.
  virtual std::shared_ptr<const EpochPlan> epoch(int64_t number, int64_t done) const = 0;
};

// The number of samples, or batches, that a shard gets of `size`.
int64_t share_of_shard(int64_t size, const LoaderOptions& options);
struct ShardCounts {
  int64_t samples, batches;
};
// Throws Error if batches are not possible.
ShardCounts count_batches(int64_t size, const LoaderOptions& options);

// Plans for `size` samples in a random order, in their own order, or in the sampler's, in batches
// of options.batch. `options` must outlive the plans. Throws Error on bad options.
std::unique_ptr<Plans> even_plans(int64_t size, const LoaderOptions& options);
// Batches of samples of the given lengths under options.budget. `describe` names a
// sample in errors.
std::unique_ptr<Plans> budget_plans(const std::vector<int64_t>& lengths,
                                    const LoaderOptions& options,
                                    const std::function<std::string(int64_t)>& describe);
void check_budget(const TokenBudget& budget);

}  // namespace binade::data
