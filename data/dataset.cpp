#include <binade/core/io/hash64.h>
#include <binade/data/dataset.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>

namespace binade::data {
namespace {

void check_index(const Dataset& dataset, int64_t index) {
  check(index >= 0 && index < dataset.size(), "dataset: got index ", index, ", expected one of ",
        dataset.size());
}

constexpr uint64_t kSplitKey = 0x5350'4C49'5453'4554;

}  // namespace

uint64_t Dataset::id(int64_t index) const {
  Hash64 hash;
  hash.add(describe(index));
  return hash.value();
}

Subset::Subset(std::shared_ptr<const Dataset> inner, std::vector<int64_t> indices)
    : inner_(std::move(inner)), indices_(std::move(indices)) {
  check(inner_ != nullptr, "subset: got no dataset");
  for (int64_t index : indices_) {
    check_index(*inner_, index);
  }
}

int64_t Subset::inner_index(int64_t index) const {
  check_index(*this, index);
  return indices_[static_cast<size_t>(index)];
}

Sample Subset::get(int64_t index) const { return inner_->get(inner_index(index)); }

std::string Subset::describe(int64_t index) const { return inner_->describe(inner_index(index)); }

Split split_dataset(std::shared_ptr<const Dataset> inner, double share, uint64_t seed) {
  check(inner != nullptr, "split_dataset: got no dataset");
  check(share >= 0 && share <= 1, "split_dataset: got share ", share, ", expected 0 to 1");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < inner->size(); ++i) {
    const philox::Block block = philox::generate(seed ^ kSplitKey, static_cast<uint64_t>(i));
    const bool in_second = static_cast<double>(block[0]) * 0x1p-32 < share;
    (in_second ? second : first).push_back(i);
  }
  return {std::make_shared<Subset>(inner, std::move(first)),
          std::make_shared<Subset>(inner, std::move(second))};
}

CachedDataset::CachedDataset(std::shared_ptr<const Dataset> inner, int64_t max_bytes)
    : inner_(std::move(inner)),
      max_bytes_(max_bytes),
      slots_(inner_ != nullptr ? static_cast<size_t>(inner_->size()) : 0) {
  check(inner_ != nullptr, "cached dataset: got no dataset");
}

CachedDataset::~CachedDataset() {
  for (auto& slot : slots_) {
    delete slot.load(std::memory_order_acquire);
  }
}

Sample CachedDataset::get(int64_t index) const {
  check_index(*this, index);
  auto& slot = slots_[static_cast<size_t>(index)];
  if (const Sample* kept = slot.load(std::memory_order_acquire)) {
    return *kept;
  }
  Sample sample = inner_->get(index);
  const auto bytes = static_cast<int64_t>(sizeof(Sample) + sample.image.pixels.size());
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > max_bytes_) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return sample;
  }
  auto kept = std::make_unique<Sample>(sample);
  const Sample* expected = nullptr;
  if (slot.compare_exchange_strong(expected, kept.get(), std::memory_order_acq_rel)) {
    static_cast<void>(kept.release());
  } else {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);  // another thread stored it first
  }
  return sample;
}

}  // namespace binade::data
