// RowSource: decides which rows of an IterableDataset form which batch of one shard in one epoch.
// Internal to the loader.
#pragma once
#include <binade/data/batch_builder_internal.h>
#include <binade/data/iterable.h>
#include <binade/kernels/base/philox.h>

#include <condition_variable>
#include <mutex>

namespace binade::data {

struct Row {
  int64_t index = 0;  // in the order of the reader
  std::string bytes;
  bool is_repeated = false;  // another shard has it, too
};

// All rows of an epoch, shuffled within a buffer of `buffer` rows: each step takes a random row out
// of the buffer and reads the next one into its place. A pure function of the rows, the seed and
// the epoch.
class ShuffledRows {
 public:
  ShuffledRows(std::unique_ptr<RowReader> reader, int64_t buffer, uint64_t seed, int64_t epoch);
  bool next(Row& row);
  int64_t rows_read() const { return read_; }

 private:
  bool read(Row& row);

  std::unique_ptr<RowReader> reader_;
  size_t capacity_;
  philox::Stream random_;
  std::vector<Row> buffer_;
  int64_t read_ = 0;
  bool at_end_ = false;
};

// One shard's rows: row `shard` of every `shards` rows; uneven_shards decides about the last ones.
class ShardRows {
 public:
  ShardRows(ShuffledRows rows, int64_t shard, int64_t shards, UnevenShards rule);
  bool next(Row& row);
  int64_t rows_read() const { return rows_.rows_read(); }

 private:
  ShuffledRows rows_;
  int64_t shard_, shards_;
  UnevenShards rule_;
  std::vector<Row> first_;  // first rows of the order, for padding
  bool at_end_ = false;
};

class RowSource {
 public:
  // Opens nothing yet.
  RowSource(std::shared_ptr<const IterableDataset> dataset, const LoaderOptions& options,
            int64_t epoch, int64_t first_batch);
  // The rows of batch `number`: fewer than a batch at the end, and none after it. Batches are read
  // in order: a call waits for all batches before it. Throws the errors of reading.
  std::vector<Row> take(int64_t number, SampleWatch& watch);
  // Ends waiting: calls that wait, and later calls, return no rows.
  void cancel();

 private:
  void open(SampleWatch& watch);
  std::vector<Row> read(SampleWatch& watch);

  const std::shared_ptr<const IterableDataset> dataset_;
  const LoaderOptions options_;
  const int64_t epoch_, first_batch_;
  std::unique_ptr<ShardRows> rows_;  // for the batch whose turn it is
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t turn_;
  bool ended_ = false;
};

}  // namespace binade::data
