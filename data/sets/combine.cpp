// map, filter, concat, zip, subset, cache and collect.
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sets/combine.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>

namespace binade::data {
namespace {

constexpr int64_t kGrain = 16;  // samples of a task that reads them

class MapDataset final : public Decorator {
 public:
  MapDataset(DatasetPtr inner, std::function<Sample(Sample)> f)
      : Decorator("map", inner.get()), f_(std::move(f)) {}

  Sample get(int64_t index) const override { return f_(inner().get(index)); }
  int channels() const override { return kUnknownChannels; }
  std::optional<int64_t> label(int64_t) const override { return std::nullopt; }
  std::optional<int64_t> length(int64_t, std::string_view) const override { return std::nullopt; }
  bool in_memory() const override { return false; }

 private:
  std::function<Sample(Sample)> f_;
};

class MapRows final : public IterableDataset {
 public:
  MapRows(IterablePtr inner, std::function<Sample(Sample)> f)
      : inner_(std::move(inner)), f_(std::move(f)) {}

  std::unique_ptr<RowReader> open(int64_t epoch) const override { return inner_->open(epoch); }
  Sample decode(const std::string& bytes, int64_t index) const override {
    return f_(inner_->decode(bytes, index));
  }
  int64_t size() const override { return inner_->size(); }
  DataIdentity identity() const override { return inner_->identity(); }
  std::string describe(int64_t index) const override { return inner_->describe(index); }

 private:
  IterablePtr inner_;
  std::function<Sample(Sample)> f_;
};

// The base of concat and zip.
class ManyDatasets : public Dataset {
 public:
  ManyDatasets(const char* name, std::vector<DatasetPtr> parts) : parts_(std::move(parts)) {
    check(!parts_.empty(), name, ": got no datasets");
    for (const DatasetPtr& part : parts_) {
      check(part.get() != nullptr, name, ": got an empty pointer, expected datasets");
    }
  }

  bool in_memory() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const DatasetPtr& part) { return part->in_memory(); });
  }

 protected:
  std::vector<DatasetPtr> parts_;
};

class ConcatDataset final : public ManyDatasets {
 public:
  explicit ConcatDataset(std::vector<DatasetPtr> parts) : ManyDatasets("concat", std::move(parts)) {
    for (const DatasetPtr& part : parts_) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->size());
      classes_ = std::max(classes_, part->class_count());
      const std::vector<std::string> names = part->class_names();
      check(names.empty() || names_.empty() || names == names_,
            "concat: got datasets with other class names, or in another order, expected the same "
            "classes; give labels a common meaning by map()");
      names_ = names_.empty() ? names : names_;
    }
  }

  int64_t size() const override { return ends_.back(); }
  Sample get(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->get(inner);
  }
  Sample get_for(int64_t index, ImageRequest& request) const override {
    const auto [part, inner] = place(index);
    return part->get_for(inner, request);
  }
  void read(int64_t index, ImageRequest& request, Sample& sample) const override {
    const auto [part, inner] = place(index);
    part->read(inner, request, sample);
  }
  bool will_need(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->will_need(inner);
  }
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->encoded(inner);
  }
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override {
    const auto [part, inner] = place(index);
    part->read_encoded(inner, bytes, request, sample);
  }
  int64_t class_count() const override { return classes_; }
  std::vector<std::string> class_names() const override { return names_; }
  int channels() const override {
    const int first = parts_.front()->channels();
    const bool same = std::all_of(parts_.begin(), parts_.end(), [&](const DatasetPtr& part) {
      return part->channels() == first;
    });
    return same ? first : kUnknownChannels;
  }
  std::string describe(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->describe(inner);
  }
  uint64_t id(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->id(inner);
  }
  std::optional<int64_t> label(int64_t index) const override {
    const auto [part, inner] = place(index);
    return part->label(inner);
  }
  std::optional<int64_t> length(int64_t index, std::string_view field) const override {
    const auto [part, inner] = place(index);
    return part->length(inner, field);
  }

 private:
  std::pair<const Dataset*, int64_t> place(int64_t index) const {
    check(index >= 0 && index < size(), "concat: got index ", index, ", expected one of ", size());
    const auto part =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {parts_[part].get().get(), index - (part == 0 ? 0 : ends_[part - 1])};
  }

  std::vector<int64_t> ends_;
  int64_t classes_ = 0;
  std::vector<std::string> names_;
};

class ZipDataset final : public ManyDatasets {
 public:
  explicit ZipDataset(std::vector<DatasetPtr> parts) : ManyDatasets("zip", std::move(parts)) {
    for (const DatasetPtr& part : parts_) {
      check(part->size() == size(), "zip: got datasets of ", size(), " and ", part->size(),
            " samples, expected equal sizes");
    }
    std::vector<Sample> first;
    for (size_t i = 0; i < parts_.size() && size() > 0; ++i) {
      try {
        first.push_back(parts_[i]->get(0));
      } catch (const Error&) {  // an unreadable sample is the loader's business
      }
    }
    merge(std::move(first));  // two fields of one name are an error at once
  }

  int64_t size() const override { return parts_.front()->size(); }
  Sample get(int64_t index) const override {
    std::vector<Sample> samples;
    for (const DatasetPtr& part : parts_) {
      samples.push_back(part->get(index));
    }
    return merge(std::move(samples));
  }
  int64_t class_count() const override {
    const auto found = with_classes();
    return found == parts_.end() ? 0 : (*found)->class_count();
  }
  std::vector<std::string> class_names() const override {
    const auto found = with_classes();
    return found == parts_.end() ? std::vector<std::string>{} : (*found)->class_names();
  }
  int channels() const override {
    int channels = 0;
    for (const DatasetPtr& part : parts_) {
      channels = part->channels() != 0 ? part->channels() : channels;
    }
    return channels;
  }
  std::string describe(int64_t index) const override { return parts_.front()->describe(index); }
  uint64_t id(int64_t index) const override {
    Hash64 hash;
    for (const DatasetPtr& part : parts_) {
      hash.add(part->id(index));
    }
    return hash.value();
  }
  std::optional<int64_t> label(int64_t index) const override {
    for (const DatasetPtr& part : parts_) {
      if (const std::optional<int64_t> label = part->label(index)) {
        return label;
      }
    }
    return std::nullopt;
  }
  std::optional<int64_t> length(int64_t index, std::string_view field) const override {
    for (const DatasetPtr& part : parts_) {
      if (const std::optional<int64_t> length = part->length(index, field)) {
        return length;
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<DatasetPtr>::const_iterator with_classes() const {
    return std::find_if(parts_.begin(), parts_.end(),
                        [](const DatasetPtr& part) { return part->class_count() > 0; });
  }

  static Sample merge(std::vector<Sample> samples) {
    Sample all;
    const auto once = [](bool already, const std::string& what) {
      check(!already, "zip: two datasets have ", what, "; rename or drop one by map()");
    };
    for (Sample& part : samples) {
      if (!part.image.pixels.empty()) {
        once(!all.image.pixels.empty(), "an image");
        all.image = std::move(part.image);
      }
      if (!part.values.empty()) {
        once(!all.values.empty(), "values");
        all.values = std::move(part.values);
      }
      if (part.label != kNoLabel) {
        once(all.label != kNoLabel, "a label");
        all.label = part.label;
      }
      for (auto& [name, tensor] : part.fields) {
        once(all.has(name), text("the field '", name, "'"));
        all.fields.emplace_back(name, std::move(tensor));
      }
      for (auto& mask : part.masks) {
        const bool there = std::any_of(all.masks.begin(), all.masks.end(),
                                       [&](const auto& m) { return m.first == mask.first; });
        once(there, text("the mask '", mask.first, "'"));
        all.masks.push_back(std::move(mask));
      }
    }
    return all;
  }
};

class CollectedRows final : public Dataset {
 public:
  explicit CollectedRows(IterablePtr rows) : rows_(std::move(rows)) {
    check(rows_.get() != nullptr, "collect: got no dataset");
    const std::unique_ptr<RowReader> reader = rows_->open(0);
    check(reader != nullptr, "collect: the dataset opened no reader");
    for (std::string bytes; reader->next(bytes);) {
      bytes_.push_back(bytes);
    }
  }

  int64_t size() const override { return std::ssize(bytes_); }
  Sample get(int64_t index) const override { return rows_->decode(row(index), index); }
  int channels() const override { return rows_->channels(); }
  std::string describe(int64_t index) const override { return rows_->describe(index); }
  uint64_t id(int64_t index) const override {
    Hash64 hash;
    hash.add(row(index));
    return hash.value();
  }

 private:
  const std::string& row(int64_t index) const {
    check(index >= 0 && index < size(), "collect: got index ", index, ", expected one of ", size());
    return bytes_[static_cast<size_t>(index)];
  }

  IterablePtr rows_;
  std::vector<std::string> bytes_;
};

}  // namespace

std::shared_ptr<const Dataset> map(DatasetPtr dataset, std::function<Sample(Sample)> f) {
  check(f != nullptr, "map: got no function");
  return std::make_shared<MapDataset>(std::move(dataset), std::move(f));
}

std::shared_ptr<const IterableDataset> map(IterablePtr dataset, std::function<Sample(Sample)> f) {
  check(f != nullptr && dataset.get() != nullptr, "map: got no function or no dataset");
  return std::make_shared<MapRows>(std::move(dataset), std::move(f));
}

std::shared_ptr<const Dataset> filter(DatasetPtr dataset, std::function<bool(const Sample&)> keep) {
  check(dataset.get() != nullptr && keep != nullptr, "filter: got no dataset or no function");
  std::vector<uint8_t> kept(static_cast<size_t>(dataset->size()), 1);
  kernels::parallel_for(dataset->size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::optional<Sample> sample;
      try {
        sample = dataset->get(i);
      } catch (const OutOfMemory&) {
        throw;
      } catch (const Error&) {
        continue;  // kept
      }
      kept[static_cast<size_t>(i)] = keep(*sample) ? 1 : 0;
    }
  });
  std::vector<int64_t> indices;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] != 0) {
      indices.push_back(static_cast<int64_t>(i));
    }
  }
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

std::shared_ptr<const Dataset> concat(std::vector<DatasetPtr> datasets) {
  return std::make_shared<ConcatDataset>(std::move(datasets));
}

std::shared_ptr<const Dataset> zip(std::vector<DatasetPtr> datasets) {
  return std::make_shared<ZipDataset>(std::move(datasets));
}

std::shared_ptr<const Dataset> subset(DatasetPtr dataset, std::vector<int64_t> indices) {
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

std::shared_ptr<const Dataset> cache(DatasetPtr dataset, int64_t max_bytes) {
  check(max_bytes >= 0, "cache: got max_bytes ", max_bytes, ", expected at least 0");
  return std::make_shared<CachedDataset>(std::move(dataset), max_bytes);
}

std::shared_ptr<const Dataset> collect(IterablePtr rows) {
  return std::make_shared<CollectedRows>(std::move(rows));
}

}  // namespace binade::data
