// Weighted sampling, and weights of classes.
#include <binade/data/sampling/sampler.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::data {
namespace {

constexpr uint64_t kWeightKey = 0x5745'4947'4854'4544;  // separates its random numbers

// Uniform in (0, 1), 53 bits, of draw `i` of an epoch.
double uniform(uint64_t seed, int64_t epoch, int64_t i) {
  const philox::Block block =
      philox::generate(seed ^ kWeightKey, static_cast<uint64_t>(i), static_cast<uint64_t>(epoch));
  const uint64_t bits = uint64_t(block[0]) << 21 | block[1] >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace

WeightedSampler::WeightedSampler(std::vector<double> weights, WeightedSamplerOptions options)
    : weights_(std::move(weights)), options_(options) {
  check(options.samples >= 0, "weighted sampler: got samples ", options.samples,
        ", expected at least 0");
  double sum = 0;
  int64_t positive = 0;
  sums_.reserve(weights_.size());
  for (size_t i = 0; i < weights_.size(); ++i) {
    check(std::isfinite(weights_[i]) && weights_[i] >= 0, "weighted sampler: got weight ",
          weights_[i], " of sample ", i, ", expected a finite number of at least 0");
    positive += weights_[i] > 0 ? 1 : 0;
    sums_.push_back(sum += weights_[i]);
  }
  check(positive > 0 && std::isfinite(sum), "weighted sampler: got ", weights_.size(),
        " weights with the sum ", sum, ", expected a finite sum above 0");
  if (options_.samples == 0) {
    options_.samples = static_cast<int64_t>(weights_.size());
  }
  check(options_.replacement || options_.samples <= positive, "weighted sampler: got ", positive,
        " weights above 0 for ", options_.samples,
        " samples without replacement; draw fewer samples, or use replacement");
}

int64_t WeightedSampler::size(int64_t dataset_size) const {
  check(static_cast<int64_t>(weights_.size()) == dataset_size, "weighted sampler: got ",
        weights_.size(), " weights, expected one for each of the ", dataset_size,
        " samples of the dataset");
  return options_.samples;
}

std::vector<int64_t> WeightedSampler::order(int64_t dataset_size, uint64_t seed,
                                            int64_t epoch) const {
  std::vector<int64_t> indices(static_cast<size_t>(size(dataset_size)));
  if (options_.replacement) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const double drawn = uniform(seed, epoch, static_cast<int64_t>(i)) * sums_.back();
      auto place = std::upper_bound(sums_.begin(), sums_.end(), drawn) - sums_.begin();
      place = std::min<std::ptrdiff_t>(place, std::ssize(sums_) - 1);
      for (; weights_[static_cast<size_t>(place)] == 0; --place) {  // rounded up to the last sum
      }
      indices[i] = place;
    }
    return indices;
  }
  // Takes the smallest of exponential variables with rates w: Efraimidis and Spirakis, "Weighted
  // random sampling with a reservoir", 2006.
  std::vector<std::pair<double, int64_t>> keys;
  for (int64_t i = 0; i < dataset_size; ++i) {
    const double weight = weights_[static_cast<size_t>(i)];
    if (weight > 0) {
      keys.emplace_back(-std::log(uniform(seed, epoch, i)) / weight, i);
    }
  }
  std::partial_sort(keys.begin(), keys.begin() + std::ssize(indices), keys.end());
  std::transform(keys.begin(), keys.begin() + std::ssize(indices), indices.begin(),
                 [](const auto& key) { return key.second; });
  return indices;
}

std::vector<int64_t> labels_of(const DatasetPtr& dataset) {
  check(dataset.get() != nullptr, "labels_of: got no dataset");
  std::vector<int64_t> labels(static_cast<size_t>(dataset->size()));
  constexpr int64_t kGrain = 64;
  kernels::parallel_for(dataset->size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::optional<int64_t> label = dataset->label(i);
      if (!label) {
        const Sample sample = dataset->get(i);
        if (sample.has("labels")) {
          const Tensor& field = sample["labels"];
          check(!is_floating(field.dtype()) && field.numel() == 1,
                "labels_of: ", dataset->describe(i), " has labels ", field.dtype(), " ",
                field.sizes(), ", expected one class, an integer");
          label = static_cast<int64_t>(field.at(0));
        } else {
          label = sample.label;
        }
      }
      check(*label >= 0, "labels_of: ", dataset->describe(i), " has ",
            *label == kNoLabel ? "no label" : text("label ", *label),
            ", expected a class of 0 or more");
      labels[static_cast<size_t>(i)] = *label;
    }
  });
  return labels;
}

std::vector<int64_t> class_counts(const DatasetPtr& dataset) {
  const std::vector<int64_t> labels = labels_of(dataset);
  const int64_t largest = labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
  const int64_t said = dataset->class_count();
  constexpr int64_t kMostClasses = int64_t(1) << 24;
  check(largest < kMostClasses && (said == 0 || largest < said), "class_counts: got label ",
        largest, ", expected less than ", said == 0 ? kMostClasses : said);
  std::vector<int64_t> counts(static_cast<size_t>(said == 0 ? largest + 1 : said));
  for (const int64_t label : labels) {
    ++counts[static_cast<size_t>(label)];
  }
  return counts;
}

Tensor class_weights(const DatasetPtr& dataset) {
  const std::vector<int64_t> counts = class_counts(dataset);
  std::vector<float> weights;
  const auto share = static_cast<double>(dataset->size()) /
                     static_cast<double>(std::max<size_t>(counts.size(), 1));
  for (size_t c = 0; c < counts.size(); ++c) {
    check(counts[c] > 0, "class_weights: class ", c,
          " has no samples, so it has no weight; leave the class out, or set weights by hand");
    weights.push_back(static_cast<float>(share / static_cast<double>(counts[c])));
  }
  return Tensor::from(weights);
}

WeightedSampler balanced_sampler(const DatasetPtr& dataset, WeightedSamplerOptions options) {
  const std::vector<int64_t> labels = labels_of(dataset), counts = class_counts(dataset);
  std::vector<double> weights;
  weights.reserve(labels.size());
  for (const int64_t label : labels) {
    weights.push_back(1 / static_cast<double>(counts[static_cast<size_t>(label)]));
  }
  return WeightedSampler(std::move(weights), options);
}

}  // namespace binade::data
