// Batches of one size, in the order of a permutation or of a sampler.
#include <binade/data/permutation.h>
#include <binade/data/sampling/epoch_plan_internal.h>

namespace binade::data {
namespace {

class EvenPlan final : public EpochPlan {
 public:
  EvenPlan(int64_t size, int64_t done, const LoaderOptions& options)
      : size_(size),
        done_(done),
        samples_(share_of_shard(size - done, options)),
        options_(options) {}

  int64_t size() const override { return size_; }
  int64_t batches() const override {
    const int64_t batch = options_.batch;
    return samples_ / batch + (!options_.drop_last && samples_ % batch != 0 ? 1 : 0);
  }
  int64_t index(int64_t position) const override {
    return !order.empty() ? order[static_cast<size_t>(position)]
           : shuffle      ? (*shuffle)(position)
                          : position;
  }
  Places batch(int64_t number) const override {
    const int64_t first = number * options_.batch, shards = options_.shard_count;
    const int64_t begin = done_ + first * shards + options_.shard;
    const int64_t count = std::min(options_.batch, samples_ - first);
    return {.first = done_ / shards + first,
            .begin = begin,
            .stride = shards,
            .count = count,
            .repeated = begin + (count - 1) * shards >= size_ ? 1 : 0};
  }

  std::optional<Permutation> shuffle;
  std::vector<int64_t> order;  // of a sampler

 private:
  int64_t size_, done_, samples_;
  const LoaderOptions& options_;
};

class EvenPlans final : public Plans {
 public:
  EvenPlans(int64_t dataset_size, const LoaderOptions& options)
      : dataset_size_(dataset_size), options_(options) {
    size_ = options.sampler ? options.sampler->size(dataset_size) : dataset_size;
    check(size_ > 0, "loader: the sampler draws ", size_, " samples, expected at least 1");
    counts_ = count_batches(size_, options);
  }

  int64_t samples() const override { return counts_.samples; }
  int64_t batches() const override { return counts_.batches; }

  std::shared_ptr<const EpochPlan> epoch(int64_t number, int64_t done) const override {
    check(done >= 0 && done <= size_, "loader: got ", done,
          " samples of the epoch that were used, expected 0 to ", size_);
    auto plan = std::make_shared<EvenPlan>(size_, done, options_);
    if (options_.sampler) {
      plan->order = options_.sampler->order(dataset_size_, options_.seed, number);
      check(static_cast<int64_t>(plan->order.size()) == size_, "loader: the sampler's epoch ",
            number, " has ", plan->order.size(), " samples, but its size() is ", size_);
      for (const int64_t index : plan->order) {
        check(index >= 0 && index < dataset_size_, "loader: the sampler draws sample ", index,
              ", expected one of ", dataset_size_);
      }
    } else if (options_.shuffle) {
      plan->shuffle.emplace(size_, options_.seed, number);
    }
    return plan;
  }

 private:
  int64_t dataset_size_, size_ = 0;
  const LoaderOptions& options_;
  ShardCounts counts_{};
};

}  // namespace

int64_t share_of_shard(int64_t size, const LoaderOptions& options) {
  const int64_t rest = size % options.shard_count;
  const bool one_more = options.uneven_shards == UnevenShards::pad
                            ? rest != 0
                            : options.uneven_shards == UnevenShards::keep && options.shard < rest;
  return size / options.shard_count + (one_more ? 1 : 0);
}

ShardCounts count_batches(int64_t size, const LoaderOptions& options) {
  const int64_t samples = share_of_shard(size, options);
  const int64_t batches =
      samples / options.batch + (!options.drop_last && samples % options.batch != 0 ? 1 : 0);
  const bool may_be_empty = options.uneven_shards == UnevenShards::keep && samples == 0;
  check(batches > 0 || may_be_empty, "loader: ", samples, " samples give no full batch of ",
        options.batch, "; use a smaller batch or drop_last = false");
  return {samples, batches};
}

std::unique_ptr<Plans> even_plans(int64_t size, const LoaderOptions& options) {
  return std::make_unique<EvenPlans>(size, options);
}

}  // namespace binade::data
