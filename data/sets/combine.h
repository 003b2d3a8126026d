// Functions that make a dataset of others. Samples are decoded when they are asked for, except by
// filter().
//
//   auto pairs = data::zip({photos, captions});
//   auto [train, validation] = data::split(pairs, {.share = 0.1, .seed = 7});
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/iterable.h>

#include <functional>

namespace binade::data {

// Applies `f` to every sample. `f` is called from several threads and must be a pure function: for
// random changes use LoaderOptions::map. The result does not know label() and length(). An Error
// of `f` counts as a sample that cannot be read.
std::shared_ptr<const Dataset> map(DatasetPtr dataset, std::function<Sample(Sample)> f);
std::shared_ptr<const IterableDataset> map(IterablePtr dataset, std::function<Sample(Sample)> f);
// The samples for which `keep` is true, in their order. Reads all samples now, on all threads;
// those that cannot be read are kept, so that the loader's BadFilePolicy decides about them.
std::shared_ptr<const Dataset> filter(DatasetPtr dataset, std::function<bool(const Sample&)> keep);
// The samples of the datasets one after another. Class names must be equal if several have some.
std::shared_ptr<const Dataset> concat(std::vector<DatasetPtr> datasets);
// Sample i has the fields, masks, image and label of sample i of each dataset. Sizes must be equal,
// and no field may come twice.
std::shared_ptr<const Dataset> zip(std::vector<DatasetPtr> datasets);
// The samples at the given indices, in that order; an index may come several times.
std::shared_ptr<const Dataset> subset(DatasetPtr dataset, std::vector<int64_t> indices);
// Keeps decoded samples in memory, up to max_bytes. (A Loader does that by itself:
// LoaderOptions::cache_bytes.)
std::shared_ptr<const Dataset> cache(DatasetPtr dataset, int64_t max_bytes = int64_t(1) << 30);

// The rows of an IterableDataset, with random access: reads them all now and keeps their bytes;
// they are decoded when asked for.
std::shared_ptr<const Dataset> collect(IterablePtr rows);

// Samples with equal numbers stay in one part. One number per sample; empty: each for itself.
using SampleGroups = std::vector<uint64_t>;
// Equal numbers for samples with equal pixels, values and fields: duplicates under other names.
// Reads all samples, on all threads; those that cannot be read have a number of their own.
SampleGroups content_groups(const DatasetPtr& dataset);

struct SplitOptions {
  double share = 0.1;  // of the second part, rounded to whole samples
  uint64_t seed = 0;
  SampleGroups groups = {};
};
// Splits the dataset into two parts of exact sizes (with groups: as near as their sizes allow), in
// the order of the dataset.
Split split(DatasetPtr dataset, const SplitOptions& options = {});

struct FoldOptions {
  int64_t folds = 5;
  int64_t fold = 0;  // the second part: the first part has all others
  uint64_t seed = 0;
  SampleGroups groups = {};
};
// Cross-validation: every sample is in the second part of exactly one fold.
Split k_fold(DatasetPtr dataset, const FoldOptions& options);

}  // namespace binade::data
