// BatchAssembler: the tensors of a batch from its samples. Internal to the loader; all workers use
// it at once.
#pragma once
#include <binade/data/loader.h>

#include <exception>
#include <optional>
#include <span>

namespace binade::data {

struct BuiltBatch {
  Batch batch;
  std::vector<BadFile> bad;   // found on the way, in order
  std::exception_ptr error;   // then `batch` is empty
  bool is_end = false;        // the epoch has no such batch
  bool has_pictures = false;  // batch.images is made of Sample::image or values
  double decode_seconds = 0, transform_seconds = 0, normalize_seconds = 0;

  // Empty again, but with the memory of its vectors.
  void clear() {
    clear_batch(batch);
    bad.clear();
    error = nullptr;
    is_end = has_pictures = false;
    decode_seconds = transform_seconds = normalize_seconds = 0;
  }
  static void clear_batch(Batch& batch) {
    std::vector<int64_t> indices = std::move(batch.indices);
    NamedTensors fields = std::move(batch.fields);
    indices.clear();
    fields.clear();
    batch = {};
    batch.indices = std::move(indices);
    batch.fields = std::move(fields);
  }
};

// An error of the collate function that is not about one sample.
class CollateError : public Error {
 public:
  explicit CollateError(const std::string& cause) : Error("collate: " + cause), cause_(cause) {}
  const std::string& cause() const { return cause_; }

 private:
  std::string cause_;
};

class BatchAssembler {
 public:
  // `channels` is the dataset's. Throws Error if the mean or the deviation does not fit it.
  // `options` must outlive the assembler.
  BatchAssembler(int channels, const LoaderOptions& options);
  // Fills out.batch, whose indices, first and epoch are set. Throws SampleError or CollateError.
  void assemble(std::span<const Sample> samples, BuiltBatch& out) const;

 private:
  void check_kinds(std::span<const Sample> samples) const;
  void add_labels(std::span<const Sample> samples, Batch& batch) const;
  void add_images(std::span<const Sample> samples, Batch& batch) const;
  void add_values(std::span<const Sample> samples, Batch& batch) const;
  void add_masks(std::span<const Sample> samples, Batch& batch) const;
  void collate(std::span<const Sample> samples, Batch& batch) const;

  const LoaderOptions& options_;
  int channels_;  // kUnknownChannels: those of the samples; 0: no images
  Collate collate_;
  std::optional<Normalizer> normalizer_;  // for images whose channels are known
};

}  // namespace binade::data
