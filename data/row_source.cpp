#include <binade/data/row_source_internal.h>

#include <utility>

namespace binade::data {
namespace {

constexpr uint64_t kBufferKey = 0x4255'4646'4552'5331;  // separates its random numbers

}  // namespace

std::string IterableDataset::describe(int64_t index) const { return text("row ", index); }

ShuffledRows::ShuffledRows(std::unique_ptr<RowReader> reader, int64_t buffer, uint64_t seed,
                           int64_t epoch)
    : reader_(std::move(reader)),
      capacity_(static_cast<size_t>(buffer)),
      random_(seed ^ kBufferKey, static_cast<uint64_t>(epoch)) {
  check(reader_ != nullptr, "loader: the dataset opened no reader");
}

bool ShuffledRows::read(Row& row) {
  if (at_end_ || !reader_->next(row.bytes)) {
    at_end_ = true;
    return false;
  }
  row.index = read_++;
  return true;
}

bool ShuffledRows::next(Row& row) {
  Row incoming;
  while (buffer_.size() < capacity_ && read(incoming)) {
    buffer_.push_back(std::move(incoming));
  }
  if (buffer_.empty()) {
    return false;
  }
  const uint32_t place = random_.next_below(static_cast<uint32_t>(buffer_.size()));
  row = std::move(buffer_[place]);
  if (read(incoming)) {
    buffer_[place] = std::move(incoming);
  } else {
    buffer_[place] = std::move(buffer_.back());
    buffer_.pop_back();
  }
  return true;
}

ShardRows::ShardRows(ShuffledRows rows, int64_t shard, int64_t shards, UnevenShards rule)
    : rows_(std::move(rows)), shard_(shard), shards_(shards), rule_(rule) {}

bool ShardRows::next(Row& row) {
  if (at_end_) {
    return false;
  }
  const bool is_first = rows_.rows_read() == 0;
  Row mine;
  int64_t got = 0;  // rows in this round
  for (Row other; got < shards_ && rows_.next(other); ++got) {
    if (is_first && rule_ == UnevenShards::pad) {
      first_.push_back(other);
    }
    if (got == shard_) {
      mine = std::move(other);
    }
  }
  if (got < shards_) {
    at_end_ = true;
    if (got == 0 || rule_ == UnevenShards::drop || (shard_ >= got && rule_ == UnevenShards::keep)) {
      return false;
    }
    if (shard_ >= got) {
      mine = first_[static_cast<size_t>(shard_ - got) % first_.size()];
      mine.is_repeated = true;
    }
  }
  row = std::move(mine);
  return true;
}

RowSource::RowSource(std::shared_ptr<const IterableDataset> dataset, const LoaderOptions& options,
                     int64_t epoch, int64_t first_batch)
    : dataset_(std::move(dataset)),
      options_(options),
      epoch_(epoch),
      first_batch_(first_batch),
      turn_(first_batch) {}

void RowSource::open(SampleWatch& watch) {
  const int64_t buffer = options_.shuffle ? options_.shuffle_buffer : 1;
  rows_ = std::make_unique<ShardRows>(
      ShuffledRows(dataset_->open(epoch_), buffer, options_.seed, epoch_), options_.shard,
      options_.shard_count, options_.uneven_shards);
  Row skipped;
  for (int64_t i = 0; i < first_batch_ * options_.batch && !watch.cancelled(); ++i) {
    watch.begin(rows_->rows_read());
    if (!rows_->next(skipped)) {
      check(i > (first_batch_ - 1) * options_.batch, "loader: got first batch ", first_batch_,
            ", but the epoch has ", i, " samples in batches of ", options_.batch);
      return;  // the previous batch was the last one, and incomplete
    }
  }
}

std::vector<Row> RowSource::read(SampleWatch& watch) {
  watch.begin(0);
  if (!rows_) {
    open(watch);
  }
  std::vector<Row> rows;
  Row row;
  while (static_cast<int64_t>(rows.size()) < options_.batch && !watch.cancelled()) {
    watch.begin(rows_->rows_read());
    if (!rows_->next(row)) {
      break;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> RowSource::take(int64_t number, SampleWatch& watch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || turn_ == number; });
  if (ended_) {
    return {};
  }
  std::vector<Row> rows;
  std::exception_ptr error;
  lock.unlock();  // only the batch whose turn it is gets here
  try {
    rows = read(watch);
    const auto got = static_cast<int64_t>(rows.size()), read = rows_->rows_read(),
               size = dataset_->size();
    const bool at_end = got < options_.batch && !watch.cancelled();
    check(!at_end || read > 0, "loader: the dataset is empty");
    check(!at_end || size < 0 || size == read, "loader: the dataset has ", read,
          " rows, but its size() is ", size);
    const bool none = number == 0 && got < (options_.drop_last ? options_.batch : 1);
    check(!at_end || !none || options_.uneven_shards == UnevenShards::keep, "loader: ", read,
          " rows in ", options_.shard_count, " shards give no full batch of ", options_.batch,
          "; use a smaller batch, drop_last = false or UnevenShards::pad");
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  ++turn_;
  ended_ = ended_ || error || static_cast<int64_t>(rows.size()) < options_.batch;
  changed_.notify_all();
  if (error) {
    std::rethrow_exception(error);
  }
  return rows;
}

void RowSource::cancel() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace binade::data
