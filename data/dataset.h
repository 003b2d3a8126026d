// Dataset: a fixed number of samples with random access, and decorators over it. A dataset of your
// own needs size() and get():
//
//   struct Squares : data::Dataset {
//     int64_t size() const override { return 100; }
//     data::Sample get(int64_t i) const override {
//       const auto x = static_cast<float>(i);
//       return {.fields = {{"x", Tensor::from({x})}, {"y", Tensor::from({x * x})}}};
//     }
//   };
//
// Every const function may be called from several threads at once. data/sets has datasets, and
// data/sets/combine.h functions that make one of others.
#pragma once
#include <binade/data/sample.h>
#include <binade/data/shared.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

class ImageRequest;  // data/window/image_request.h

enum class Part { train, test };

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Sample `index` of [0, size()), always the same. Throws Error that names the file if it cannot
  // be read.
  virtual Sample get(int64_t index) const = 0;
  // The same, but the image may already be the result of request.apply(), so that a dataset decodes
  // only the part of an image that is needed. Default: get(), which ignores the request.
  virtual Sample get_for(int64_t index, ImageRequest& request) const;
  // The same into `sample`, whose memory is reused; a Loader calls this. `sample` comes without
  // values, fields, masks and label, and with an old image to replace. Default: get_for().
  virtual void read(int64_t index, ImageRequest& request, Sample& sample) const;
  // Says that sample `index` will be read soon, and returns at once. Returns false if the call has
  // no effect, so that the caller can stop. Never throws Error: get() will. Default: does nothing.
  virtual bool will_need(int64_t /*index*/) const { return false; }
  // The file of the image of sample `index` as it is stored (JPEG, PNG, ...), for a store that
  // keeps it, or a Loader that reads ahead; empty if the samples are not decoded files. Throws
  // Error that names the file if it cannot be read.
  virtual std::optional<std::vector<uint8_t>> encoded(int64_t index) const;
  // read() from the bytes that encoded() returned. Default: read().
  virtual void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                            Sample& sample) const;
  // Classes of the labels; 0 if there are none, or if their number is not known.
  virtual int64_t class_count() const { return 0; }
  // One name per class, in label order; may be empty.
  virtual std::vector<std::string> class_names() const { return {}; }
  // Channels of every image; 0: the samples have no images.
  virtual int channels() const { return kUnknownChannels; }
  // The origin of sample `index`, for messages: its path, or "file:index". Default: "sample 7".
  virtual std::string describe(int64_t index) const;
  // A hash that identifies sample `index`, made without decoding it: of its name within the data
  // set, or of its bytes. It must not change if the data set is moved. Default: of describe().
  virtual uint64_t id(int64_t index) const;
  // The label that get() gives, without decoding; empty if that is not possible. It lets a resumed
  // run notice other labels (data/identity.h).
  virtual std::optional<int64_t> label(int64_t /*index*/) const { return std::nullopt; }
  // The first size of a field of sample `index`, without decoding; empty if that is not possible.
  virtual std::optional<int64_t> length(int64_t /*index*/, std::string_view /*field*/) const {
    return std::nullopt;
  }
  // True if get() only copies memory, so that a cache would gain nothing.
  virtual bool in_memory() const { return false; }
};

// The base of decorators: a dataset whose samples are those of others.
class Decorator : public Dataset {
 public:
  // Throws Error, which begins with `name`, if there is no dataset.
  Decorator(const char* name, std::shared_ptr<const Dataset> inner);

  int64_t size() const override { return inner_->size(); }
  Sample get(int64_t index) const override { return inner_->get(inner_index(index)); }
  bool will_need(int64_t index) const override { return inner_->will_need(inner_index(index)); }
  int64_t class_count() const override { return inner_->class_count(); }
  std::vector<std::string> class_names() const override { return inner_->class_names(); }
  int channels() const override { return inner_->channels(); }
  std::string describe(int64_t index) const override {
    return inner_->describe(inner_index(index));
  }
  uint64_t id(int64_t index) const override { return inner_->id(inner_index(index)); }
  std::optional<int64_t> label(int64_t index) const override {
    return inner_->label(inner_index(index));
  }
  std::optional<int64_t> length(int64_t index, std::string_view field) const override {
    return inner_->length(inner_index(index), field);
  }
  bool in_memory() const override { return inner_->in_memory(); }

 protected:
  // The sample of `inner()` behind sample `index`. Default: the same.
  virtual int64_t inner_index(int64_t index) const { return index; }
  const Dataset& inner() const { return *inner_; }

 private:
  std::shared_ptr<const Dataset> inner_;
};

// The samples of `inner` at the given indices, in that order.
class Subset : public Decorator {
 public:
  Subset(DatasetPtr inner, std::vector<int64_t> indices);
  Sample get_for(int64_t index, ImageRequest& request) const override {
    return inner().get_for(inner_index(index), request);
  }
  void read(int64_t index, ImageRequest& request, Sample& sample) const override {
    inner().read(inner_index(index), request, sample);
  }
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override {
    return inner().encoded(inner_index(index));
  }
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override {
    inner().read_encoded(inner_index(index), bytes, request, sample);
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const std::vector<int64_t>& indices() const { return indices_; }

 protected:
  int64_t inner_index(int64_t index) const override;

 private:
  std::vector<int64_t> indices_;
};

// Two parts of a dataset, assigned per index by a hash of `seed`: `second` has about `share` of it.
struct Split {
  std::shared_ptr<const Dataset> first;
  std::shared_ptr<const Dataset> second;
};
Split split_dataset(DatasetPtr inner, double share, uint64_t seed);

// Keeps decoded samples in memory, the first ones requested, until they fill `max_bytes`.
class CachedDataset : public Decorator {
 public:
  CachedDataset(DatasetPtr inner, int64_t max_bytes);
  ~CachedDataset() override;

  Sample get(int64_t index) const override;
  // As get(), but an image that is not kept is decoded only as far as it is needed.
  Sample get_for(int64_t index, ImageRequest& request) const override;
  // Empty if the sample is kept.
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override;
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override;
  bool in_memory() const override { return true; }
  // Bytes of pixels, tensors and masks held now.
  int64_t cached_bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const Sample* keep(int64_t index, const Sample& sample) const;

  int64_t max_bytes_;
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::atomic<bool> is_full_{false};               // a sample did not fit
  mutable std::vector<std::atomic<const Sample*>> slots_;  // owned; null until decoded
};

// Mean and deviation per channel of pixels / 255, and the range of sizes, over a whole dataset.
struct DatasetStatistics {
  std::vector<float> mean, deviation;  // [channels]; a deviation of 0 is reported as 1
  int min_height = 0, max_height = 0, min_width = 0, max_width = 0;
  int64_t samples = 0;    // read
  int64_t bad_files = 0;  // skipped, if skip_bad is set

  bool one_size() const { return min_height == max_height && min_width == max_width; }
};

// Sums are exact 64-bit integers, so the result does not depend on the number of threads. An
// unreadable sample throws, or with `skip_bad` is skipped. Throws if no sample was readable.
DatasetStatistics compute_mean_std(const Dataset& dataset, bool skip_bad = false);

}  // namespace binade::data
