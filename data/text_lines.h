// TextLines: the lines of text files, one after another, as the samples of an IterableDataset. The
// function that decodes a line gives samples of any fields.
//
//   const data::TextLines rows({"a.csv", "b.csv"}, data::csv_sample, {.header_lines = 1});
//   data::Loader loader(rows, {.batch = 32});   // batch.images [32, columns], batch.labels [32]
#pragma once
#include <binade/core/owned.h>
#include <binade/data/checksums.h>
#include <binade/data/iterable.h>

#include <functional>
#include <string_view>
#include <vector>

namespace binade::data {

struct TextLinesOptions {
  int header_lines = 0;             // skipped at the beginning of every file
  int channels = kUnknownChannels;  // of the images that decode returns
  Checksums checksums = Checksums::if_present;
};

class TextLines : public IterableDataset {
 public:
  using Decode = std::function<Sample(std::string_view line)>;

  // Lines end with "\n" or "\r\n", which decode does not see; empty lines are skipped. decode is
  // called from several threads at once. A file that cannot be opened or is no regular file is an
  // error when its turn comes, and so is a line of more than 64 MiB. If there is a checksum
  // manifest (data/checksums.h), the size is compared when a file is opened, and the checksum
  // before the last part of at most 64 KiB is used.
  TextLines(std::vector<std::string> paths, Decode decode, TextLinesOptions options = {});
  ~TextLines() override;
  TextLines(TextLines&&) noexcept;

  std::unique_ptr<RowReader> open(int64_t epoch) const override;
  Sample decode(const std::string& bytes, int64_t index) const override;
  int channels() const override { return options_.channels; }
  // The number of rows after an epoch was read to its end; -1 before.
  int64_t size() const override;
  // Reads all files now, so that size() is known.
  int64_t count_rows() const;
  DataIdentity identity() const override;  // a hash of all rows in order, known with size()
  std::string describe(int64_t index) const override;  // "a.csv:17"

 private:
  class Reader;
  struct Known;

  std::vector<std::string> paths_;
  Decode decode_;
  TextLinesOptions options_;
  Owned<Known> known_;  // what is known about the files so far
};

// Parses comma-separated numbers: a class (an integer of 0 or more), then values.
Sample csv_sample(std::string_view line);

}  // namespace binade::data
