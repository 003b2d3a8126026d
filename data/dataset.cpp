#include <binade/core/io/hash64.h>
#include <binade/data/dataset.h>
#include <binade/data/sample_internal.h>
#include <binade/data/window/image_request.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>

namespace binade::data {
namespace {

void check_index(const Dataset& dataset, int64_t index) {
  check(index >= 0 && index < dataset.size(), "dataset: got index ", index, ", expected one of ",
        dataset.size());
}

constexpr uint64_t kDatasetSplitKey = 0x5350'4C49'5453'4554;

// Bytes that a sample takes in memory.
int64_t bytes_of(const Sample& sample) {
  size_t bytes = sizeof(Sample) + sample.image.pixels.size() + sample.values.size() * sizeof(float);
  for (const auto& [name, tensor] : sample.fields) {
    bytes += tensor.defined() ? static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()) : 0;
  }
  for (const auto& [name, mask] : sample.masks) {
    bytes += mask.pixels.size();
  }
  for (const auto& [name, boxes] : sample.boxes) {
    bytes += boxes.corners.size() * sizeof(boxes.corners[0]) +
             boxes.labels.size() * sizeof(boxes.labels[0]);
  }
  return static_cast<int64_t>(bytes);
}

// True if the windows of a request may be applied to the image now: masks and boxes follow later.
bool takes_windows(const Sample& sample) {
  return sample.masks.empty() && sample.boxes.empty() && !sample.image.pixels.empty();
}

// Applies the request to a sample whose image is whole.
Sample carried_out(Sample sample, ImageRequest& request) {
  if (request.has_window() && takes_windows(sample)) {
    sample.image = request.apply(sample.image);
  }
  return sample;
}

}  // namespace

Sample Dataset::get_for(int64_t index, ImageRequest&) const { return get(index); }

std::vector<std::string> numbered_class_names(int64_t classes) {
  constexpr int64_t kMost = 65536;
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes && classes <= kMost; ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

void Dataset::read(int64_t index, ImageRequest& request, Sample& sample) const {
  sample = get_for(index, request);
}

std::optional<std::vector<uint8_t>> Dataset::encoded(int64_t /*index*/) const {
  return std::nullopt;
}

void Dataset::read_encoded(int64_t index, std::span<const uint8_t> /*bytes*/, ImageRequest& request,
                           Sample& sample) const {
  read(index, request, sample);
}

std::string Dataset::describe(int64_t index) const { return text("sample ", index); }

uint64_t Dataset::id(int64_t index) const {
  Hash64 hash;
  hash.add(describe(index));
  return hash.value();
}

Decorator::Decorator(const char* name, std::shared_ptr<const Dataset> inner)
    : inner_(std::move(inner)) {
  check(inner_ != nullptr, name, ": got no dataset");
}

Subset::Subset(DatasetPtr inner, std::vector<int64_t> indices)
    : Decorator("subset", inner.get()), indices_(std::move(indices)) {
  for (int64_t index : indices_) {
    check_index(this->inner(), index);
  }
}

int64_t Subset::inner_index(int64_t index) const {
  check_index(*this, index);
  return indices_[static_cast<size_t>(index)];
}

Split split_dataset(DatasetPtr inner, double share, uint64_t seed) {
  check(inner.get() != nullptr, "split_dataset: got no dataset");
  check(share >= 0 && share <= 1, "split_dataset: got share ", share, ", expected 0 to 1");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < inner->size(); ++i) {
    const philox::Block block = philox::generate(seed ^ kDatasetSplitKey, static_cast<uint64_t>(i));
    const bool in_second = static_cast<double>(block[0]) * 0x1p-32 < share;
    (in_second ? second : first).push_back(i);
  }
  return {std::make_shared<Subset>(inner, std::move(first)),
          std::make_shared<Subset>(inner, std::move(second))};
}

CachedDataset::CachedDataset(DatasetPtr inner, int64_t max_bytes)
    : Decorator("cached dataset", inner.get()),
      max_bytes_(max_bytes),
      slots_(static_cast<size_t>(inner->size())) {}

CachedDataset::~CachedDataset() {
  for (auto& slot : slots_) {
    delete slot.load(std::memory_order_acquire);
  }
}

Sample CachedDataset::get(int64_t index) const {
  check_index(*this, index);
  if (const Sample* kept = slots_[static_cast<size_t>(index)].load(std::memory_order_acquire)) {
    return copy_of(*kept);
  }
  Sample sample = inner().get(index);
  keep(index, sample);
  return sample;
}

Sample CachedDataset::get_for(int64_t index, ImageRequest& request) const {
  check_index(*this, index);
  const bool decodes_smaller = request.reducing_gap() > 0;  // other pixels than those kept
  const Sample* kept = slots_[static_cast<size_t>(index)].load(std::memory_order_acquire);
  if (decodes_smaller || (kept == nullptr && is_full_.load(std::memory_order_relaxed))) {
    return inner().get_for(index, request);
  }
  if (kept == nullptr) {
    Sample sample = inner().get(index);
    kept = keep(index, sample);
    if (kept == nullptr) {
      return carried_out(std::move(sample), request);
    }
  }
  if (!request.has_window() || !takes_windows(*kept)) {
    return copy_of(*kept);
  }
  Sample sample = copy_without_image(*kept);
  sample.image = request.apply(kept->image);
  return sample;
}

std::optional<std::vector<uint8_t>> CachedDataset::encoded(int64_t index) const {
  check_index(*this, index);
  const bool is_kept =
      slots_[static_cast<size_t>(index)].load(std::memory_order_acquire) != nullptr;
  return is_kept ? std::nullopt : inner().encoded(index);
}

void CachedDataset::read_encoded(int64_t index, std::span<const uint8_t> bytes,
                                 ImageRequest& request, Sample& sample) const {
  const bool keeps = !is_full_.load(std::memory_order_relaxed) && request.reducing_gap() == 0;
  if (!keeps) {
    inner().read_encoded(index, bytes, request, sample);
    return;
  }
  static const Transform kNone;
  philox::Stream unused(0, 0);
  ImageRequest whole(kNone, unused);
  inner().read_encoded(index, bytes, whole, sample);
  keep(index, sample);
  sample = carried_out(std::move(sample), request);
}

// Stores a copy of the sample in the cache and returns it; null if there is no room.
const Sample* CachedDataset::keep(int64_t index, const Sample& sample) const {
  const int64_t bytes = bytes_of(sample);
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > max_bytes_) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    is_full_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  auto copy = std::make_unique<Sample>(copy_of(sample));
  const Sample* kept = nullptr;
  auto& slot = slots_[static_cast<size_t>(index)];
  if (slot.compare_exchange_strong(kept, copy.get(), std::memory_order_acq_rel)) {
    return copy.release();
  }
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);  // another thread stored it first
  return kept;
}

}  // namespace binade::data
