// IterableDataset: rows that arrive one after another, as from a file too large to index, a pipe or
// a generator. data::Loader makes batches of them as of a Dataset (data/loader.h).
//
// The Loader splits rows over ranks and workers as it does with random access. The rows, shuffled
// within a buffer, have one order per epoch; shard s of n takes positions s, s + n, ..., and
// uneven_shards decides about the rest. Every shard reads all rows, with one thread at a time, and
// decodes its own rows, with all workers. So no row is repeated or missed, all shards know the end,
// and batches depend neither on the number of workers nor on the batch at which an epoch starts.
#pragma once
#include <binade/data/identity.h>
#include <binade/data/sample.h>
#include <binade/data/shared.h>

#include <memory>
#include <string>

namespace binade::data {

// The rows of one epoch. Only one thread at a time uses it.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Replaces `bytes` by the next row; false at the end. Throws Error that names the file if it
  // cannot be read: this ends the epoch under every BadFilePolicy.
  virtual bool next(std::string& bytes) = 0;
};

// Every const function may be called from several threads at once.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;

  // A reader positioned before the first row. All shards get the same rows in the same order.
  virtual std::unique_ptr<RowReader> open(int64_t epoch) const = 0;
  // Decodes the bytes of row `index` (from 0, in the order of the reader). Throws Error if they
  // hold no sample.
  virtual Sample decode(const std::string& bytes, int64_t index) const = 0;
  // Channels of every image; 0: the samples have no images.
  virtual int channels() const { return kUnknownChannels; }
  // Rows of an epoch, -1 if unknown. train::Trainer needs it.
  virtual int64_t size() const { return -1; }
  // Identifies the rows known so far, so that a run is not resumed on others (data/identity.h).
  virtual DataIdentity identity() const { return {.samples = size()}; }
  // The origin of row `index`, for messages: "file:line".
  virtual std::string describe(int64_t index) const;
};

}  // namespace binade::data
