// Consecutive rows; tests can plant faults in them. Row i has the values i and 2 i and the class i
// % 10.
#pragma once
#include <binade/data/iterable.h>
#include <binade/kernels/base/error.h>

#include <atomic>
#include <functional>
#include <string>

namespace binade::data::test {

class FakeRows : public IterableDataset {
 public:
  explicit FakeRows(int64_t rows) : rows_(rows) {}

  std::unique_ptr<RowReader> open(int64_t) const override {
    ++opened;
    return std::make_unique<Reader>(*this);
  }
  Sample decode(const std::string& bytes, int64_t index) const override {
    if (before_decode) {
      before_decode(index);
    }
    const auto row = static_cast<float>(std::stoll(bytes));
    return {{}, index % 10, {row, 2 * row}};
  }
  int channels() const override { return 0; }
  int64_t size() const override { return said_size; }
  std::string describe(int64_t index) const override { return text("fake:", index); }

  std::function<void(int64_t index)> before_read, before_decode;  // may throw or wait
  int64_t said_size = -1;
  mutable std::atomic<int> opened{0};

 private:
  struct Reader : RowReader {
    explicit Reader(const FakeRows& rows) : rows(rows) {}
    bool next(std::string& bytes) override {
      if (rows.before_read) {
        rows.before_read(at);
      }
      bytes = std::to_string(at);
      return at++ < rows.rows_;
    }
    const FakeRows& rows;
    int64_t at = 0;
  };

  int64_t rows_;
};

}  // namespace binade::data::test
