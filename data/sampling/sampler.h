// Samplers: orders of an epoch other than a permutation of all samples; weights of samples and of
// classes.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/data/dataset.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <vector>

namespace binade::data {

// Decides the samples of an epoch and their order. The Loader deals the positions out to shards and
// batches, as it does with its own order. Functions may be called from several threads at once.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // The number of positions in every epoch. Throws Error if the sampler does not fit the dataset.
  virtual int64_t size(int64_t dataset_size) const = 0;
  // The dataset indices of an epoch, size(dataset_size) of them: a pure function of its arguments.
  virtual std::vector<int64_t> order(int64_t dataset_size, uint64_t seed, int64_t epoch) const = 0;
};

// LoaderOptions::sampler: a sampler by value, or a shared_ptr to one.
class SamplerPtr {
 public:
  SamplerPtr() = default;
  template <std::derived_from<Sampler> S>
  SamplerPtr(S sampler) : sampler_(std::make_shared<S>(std::move(sampler))) {}  // NOLINT
  template <std::derived_from<Sampler> S>
  SamplerPtr(std::shared_ptr<S> sampler) : sampler_(std::move(sampler)) {}  // NOLINT
  explicit operator bool() const { return sampler_ != nullptr; }
  const Sampler* operator->() const { return sampler_.get(); }

 private:
  std::shared_ptr<const Sampler> sampler_;
};

struct WeightedSamplerOptions {
  int64_t samples = 0;      // per epoch; 0: as many as there are weights
  bool replacement = true;  // false: no sample comes twice in an epoch
};

// Draws sample i with probability weights[i] / sum of the weights; the draws depend on the loader's
// seed and the epoch. Throws Error if a weight is negative or not finite, if all are 0, or if there
// are fewer positive weights than samples to draw without replacement.
class WeightedSampler : public Sampler {
 public:
  explicit WeightedSampler(std::vector<double> weights, WeightedSamplerOptions options = {});
  int64_t size(int64_t dataset_size) const override;
  std::vector<int64_t> order(int64_t dataset_size, uint64_t seed, int64_t epoch) const override;

 private:
  std::vector<double> weights_, sums_;  // sums_[i]: of the weights up to i
  WeightedSamplerOptions options_;
};

// The class of every sample: Dataset::label() where it is known, else get() on all threads. Throws
// Error for a sample without a class.
std::vector<int64_t> labels_of(const DatasetPtr& dataset);
// Samples per class, [class_count()]; without a class_count() as many as the largest label needs.
std::vector<int64_t> class_counts(const DatasetPtr& dataset);
// samples / (classes x count) of each class, [classes] f32: the `weight` of cross_entropy. Throws
// Error for a class without samples.
Tensor class_weights(const DatasetPtr& dataset);
// A sampler that draws every class equally often.
WeightedSampler balanced_sampler(const DatasetPtr& dataset, WeightedSamplerOptions options = {});

// Batches of samples of about equal length, as many as fit a budget.
//
//   data::Loader loader(texts, {.budget = data::TokenBudget{.tokens = 8192},
//                               .collate = data::pad("tokens")});
//
// Samples are sorted by length, rounded up to a multiple of `width`; a batch has as many neighbours
// as fit: (samples x longest, rounded up) <= tokens. In each epoch samples of one rounded length
// are shuffled, and so are the batches. The number of batches is the same in every epoch. Shards
// get whole batches; uneven_shards decides about the rest of the batches, not of the samples.
struct TokenBudget {
  int64_t tokens = 0;            // per batch, padding included
  std::string field = "tokens";  // its first size is a sample's length
  int64_t width = 8;
  int64_t max_batch = 0;  // most samples of a batch; 0: no limit
};

}  // namespace binade::data
