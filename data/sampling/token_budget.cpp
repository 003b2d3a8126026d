// Batches of samples of about equal length under a budget of tokens. The sorted lengths, and so the
// cuts between batches, are the same in every epoch. An epoch permutes the samples of equal rounded
// length, and the order of the batches.
#include <binade/data/permutation.h>
#include <binade/data/sampling/epoch_plan_internal.h>

#include <algorithm>
#include <numeric>

namespace binade::data {
namespace {

constexpr uint64_t kBucketKey = 0x4255'434B'4554'5331, kBatchKey = 0x4255'434B'4554'5332;

struct Range {
  int64_t begin, end;  // positions of the sorted samples
};

// The samples by rounded length.
struct Sorted {
  std::vector<int64_t> indices;    // by rounded length, then by index
  std::vector<Range> buckets;      // of one rounded length
  std::vector<int32_t> bucket_at;  // of each position
  std::vector<Range> batches;
};

class BudgetPlan final : public EpochPlan {
 public:
  BudgetPlan(std::shared_ptr<const Sorted> sorted, const LoaderOptions& options, int64_t epoch,
             int64_t batches)
      : sorted_(std::move(sorted)), shuffle_(options.shuffle) {
    if (shuffle_) {
      for (size_t b = 0; b < sorted_->buckets.size(); ++b) {
        const Range& bucket = sorted_->buckets[b];
        within_.emplace_back(bucket.end - bucket.begin, options.seed ^ (kBucketKey + b), epoch);
      }
    }
    const int64_t all = std::ssize(sorted_->batches);
    const Permutation order(all, options.seed ^ kBatchKey, epoch);
    int64_t first = 0;
    for (int64_t i = 0; i < batches; ++i) {
      const int64_t number = i * options.shard_count + options.shard, place = number % all;
      const Range& range = sorted_->batches[static_cast<size_t>(shuffle_ ? order(place) : place)];
      const int64_t count = range.end - range.begin;
      places_.push_back({first, range.begin, 1, count, number < all ? 0 : count});
      first += count;
    }
  }

  int64_t size() const override { return std::ssize(sorted_->indices); }
  int64_t batches() const override { return std::ssize(places_); }
  int64_t index(int64_t position) const override {
    if (shuffle_) {
      const auto b = static_cast<size_t>(sorted_->bucket_at[static_cast<size_t>(position)]);
      const int64_t begin = sorted_->buckets[b].begin;
      position = begin + within_[b](position - begin);
    }
    return sorted_->indices[static_cast<size_t>(position)];
  }
  Places batch(int64_t number) const override { return places_[static_cast<size_t>(number)]; }

 private:
  std::shared_ptr<const Sorted> sorted_;
  bool shuffle_;
  std::vector<Permutation> within_;  // of the buckets
  std::vector<Places> places_;       // of this shard's batches
};

class BudgetPlans final : public Plans {
 public:
  BudgetPlans(std::shared_ptr<const Sorted> sorted, const LoaderOptions& options)
      : sorted_(std::move(sorted)),
        options_(options),
        batches_(share_of_shard(std::ssize(sorted_->batches), options)) {
    check(batches_ > 0 || options.uneven_shards == UnevenShards::keep, "loader: a budget of ",
          options.budget->tokens, " tokens gives ", sorted_->batches.size(), " batches for ",
          options.shard_count, " shards; use a smaller budget or UnevenShards::pad");
  }

  int64_t samples() const override {
    const int64_t samples = std::ssize(sorted_->indices);
    return options_.shard_count == 1 ? samples : samples * batches_ / std::ssize(sorted_->batches);
  }
  int64_t batches() const override { return batches_; }
  std::shared_ptr<const EpochPlan> epoch(int64_t number, int64_t done) const override {
    check(
        done == 0, "loader: got ", done,
        " samples of the epoch that were used, but batches have a budget of tokens: continue with "
        "epoch(number, batch)");
    return std::make_shared<BudgetPlan>(sorted_, options_, number, batches_);
  }

 private:
  std::shared_ptr<const Sorted> sorted_;
  const LoaderOptions& options_;
  int64_t batches_;
};

}  // namespace

void check_budget(const TokenBudget& budget) {
  check(budget.tokens >= 1, "loader: got a budget of ", budget.tokens,
        " tokens, expected at least 1 (TokenBudget::tokens)");
  check(!budget.field.empty(), "loader: the budget has no field, expected the name of one");
  check(budget.width >= 1 && budget.max_batch >= 0, "loader: got the budget's width ", budget.width,
        " and max_batch ", budget.max_batch, ", expected at least 1 and 0");
}

std::unique_ptr<Plans> budget_plans(const std::vector<int64_t>& lengths,
                                    const LoaderOptions& options,
                                    const std::function<std::string(int64_t)>& describe) {
  const TokenBudget& budget = *options.budget;
  const auto rounded = [&](int64_t index) {
    const int64_t length = std::max<int64_t>(lengths[static_cast<size_t>(index)], 1);
    return (length + budget.width - 1) / budget.width * budget.width;
  };
  auto sorted = std::make_shared<Sorted>();
  sorted->indices.resize(lengths.size());
  std::iota(sorted->indices.begin(), sorted->indices.end(), int64_t(0));
  std::stable_sort(sorted->indices.begin(), sorted->indices.end(),
                   [&](int64_t a, int64_t b) { return rounded(a) < rounded(b); });
  const int64_t count = std::ssize(lengths), longest = sorted->indices.back();
  check(rounded(longest) <= budget.tokens, "loader: ", describe(longest), " has ",
        lengths[static_cast<size_t>(longest)], " tokens, ", rounded(longest), " in multiples of ",
        budget.width, ", more than the budget of ", budget.tokens,
        "; cut it, or use a larger budget");
  Range batch{0, 0};
  for (int64_t position = 0; position < count; ++position) {
    const int64_t length = rounded(sorted->indices[static_cast<size_t>(position)]);
    const int64_t samples = position - batch.begin + 1;
    if (samples > 1 && (samples * length > budget.tokens ||
                        (budget.max_batch > 0 && samples > budget.max_batch))) {
      sorted->batches.push_back({batch.begin, position});
      batch.begin = position;
    }
    if (position == 0 || rounded(sorted->indices[static_cast<size_t>(position - 1)]) != length) {
      sorted->buckets.push_back({position, position});
    }
    ++sorted->buckets.back().end;
    sorted->bucket_at.push_back(static_cast<int32_t>(sorted->buckets.size() - 1));
  }
  sorted->batches.push_back({batch.begin, count});
  return std::make_unique<BudgetPlans>(std::move(sorted), options);
}

}  // namespace binade::data
