// split() and k_fold(): parts of a dataset that keep groups of samples together.
#include <binade/core/io/hash64.h>
#include <binade/data/sample_internal.h>
#include <binade/data/sets/combine.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace binade::data {
namespace {

constexpr uint64_t kSplitKey = 0x5041'5254'4954'494F, kFoldKey = 0x4B46'4F4C'4453'4B31;

// The samples of each group; the groups in a random order.
std::vector<std::vector<int64_t>> shuffled_groups(const char* op, const DatasetPtr& dataset,
                                                  const SampleGroups& groups, uint64_t seed) {
  check(dataset.get() != nullptr, op, ": got no dataset");
  const int64_t size = dataset->size();
  check(groups.empty() || std::ssize(groups) == size, op, ": got ", groups.size(),
        " groups, expected one number for each of ", size, " samples");
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int64_t>> by_key;
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t group =
        groups.empty() ? static_cast<uint64_t>(i) : groups[static_cast<size_t>(i)];
    const philox::Block block = philox::generate(seed, group);
    by_key[{uint64_t(block[0]) << 32 | block[1], group}].push_back(i);
  }
  std::vector<std::vector<int64_t>> all;
  for (auto& [key, samples] : by_key) {
    all.push_back(std::move(samples));
  }
  return all;
}

Split split_by(const DatasetPtr& dataset, const std::vector<uint8_t>& in_second) {
  std::vector<int64_t> first, second;
  for (size_t i = 0; i < in_second.size(); ++i) {
    (in_second[i] != 0 ? second : first).push_back(static_cast<int64_t>(i));
  }
  return {std::make_shared<Subset>(dataset, std::move(first)),
          std::make_shared<Subset>(dataset, std::move(second))};
}

}  // namespace

SampleGroups content_groups(const DatasetPtr& dataset) {
  check(dataset.get() != nullptr, "content_groups: got no dataset");
  SampleGroups groups(static_cast<size_t>(dataset->size()));
  constexpr int64_t kGrain = 16;
  kernels::parallel_for(dataset->size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint64_t& group = groups[static_cast<size_t>(i)];
      try {
        group = content_hash(dataset->get(i));
      } catch (const OutOfMemory&) {
        throw;
      } catch (const Error&) {
        Hash64 own;
        own.add("unreadable");
        own.add(static_cast<uint64_t>(i));
        group = own.value();
      }
    }
  });
  return groups;
}

Split split(DatasetPtr dataset, const SplitOptions& options) {
  check(options.share >= 0 && options.share <= 1, "split: got share ", options.share,
        ", expected 0 to 1");
  const auto groups = shuffled_groups("split", dataset, options.groups, options.seed ^ kSplitKey);
  const int64_t wanted = std::llround(options.share * static_cast<double>(dataset->size()));
  std::vector<uint8_t> in_second(static_cast<size_t>(dataset->size()));
  int64_t got = 0;
  for (const std::vector<int64_t>& group : groups) {
    const int64_t with = got + std::ssize(group);
    if (std::abs(with - wanted) < std::abs(got - wanted)) {
      got = with;
      for (const int64_t index : group) {
        in_second[static_cast<size_t>(index)] = 1;
      }
    }
  }
  return split_by(dataset, in_second);
}

Split k_fold(DatasetPtr dataset, const FoldOptions& options) {
  check(options.folds >= 2 && options.fold >= 0 && options.fold < options.folds,
        "k_fold: got fold ", options.fold, " of ", options.folds,
        ", expected at least 2 folds and 0 <= fold < folds");
  const auto groups = shuffled_groups("k_fold", dataset, options.groups, options.seed ^ kFoldKey);
  check(std::ssize(groups) >= options.folds, "k_fold: got ", groups.size(),
        " samples or groups, expected at least one for each of ", options.folds, " folds");
  std::vector<int64_t> sizes(static_cast<size_t>(options.folds));
  std::vector<uint8_t> in_second(static_cast<size_t>(dataset->size()));
  for (const std::vector<int64_t>& group : groups) {
    const auto smallest = std::min_element(sizes.begin(), sizes.end());
    *smallest += std::ssize(group);
    for (const int64_t index : group) {
      in_second[static_cast<size_t>(index)] = smallest - sizes.begin() == options.fold ? 1 : 0;
    }
  }
  return split_by(dataset, in_second);
}

}  // namespace binade::data
