// Returns the samples of a dataset as consecutive rows.
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/iterable.h>

#include <memory>
#include <string>

namespace binade::data::test {

class DatasetRows : public IterableDataset {
 public:
  explicit DatasetRows(std::shared_ptr<const Dataset> dataset, bool knows_size = true)
      : dataset_(std::move(dataset)), knows_size_(knows_size) {}

  std::unique_ptr<RowReader> open(int64_t) const override {
    struct Reader : RowReader {
      explicit Reader(int64_t size) : size(size) {}
      bool next(std::string& bytes) override {
        bytes = std::to_string(at);
        return at++ < size;
      }
      int64_t size, at = 0;
    };
    return std::make_unique<Reader>(dataset_->size());
  }
  Sample decode(const std::string& bytes, int64_t) const override {
    return dataset_->get(std::stoll(bytes));
  }
  int channels() const override { return dataset_->channels(); }
  int64_t size() const override { return knows_size_ ? dataset_->size() : -1; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  bool knows_size_;
};

}  // namespace binade::data::test
