// Loader: batches of a dataset, decoded ahead by worker threads and delivered in order. The stream
// of batches is a pure function of (seed, epoch, batch number): it depends neither on the number of
// workers nor on the batch at which an epoch starts. Datasets have random access (data/dataset.h)
// or deliver one row after another (data/iterable.h).
#pragma once
#include <binade/core/owned.h>
#include <binade/core/tensor/source_line.h>
#include <binade/data/batch.h>
#include <binade/data/collate/collate.h>
#include <binade/data/dataset.h>
#include <binade/data/identity.h>
#include <binade/data/iterable.h>
#include <binade/data/sampling/sampler.h>
#include <binade/data/transforms.h>
#include <binade/data/workers/worker_pool.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace binade {
class Uploader;
}

namespace binade::data {

// How the loader treats a sample that cannot be read. If memory or file descriptors run out, that
// is always an error, since the file may be good.
//   fail:    next() throws the error.
//   replace: the next readable sample in the epoch's order takes its place; for rows, the next one
//            of the batch.
//   skip:    its batch has one sample less; an empty batch gets one replacement (with rows it is an
//            error).
// The number of batches never changes.
enum class BadFilePolicy { fail, replace, skip };

// How the loader treats the rest if the dataset cannot be divided evenly.
//   pad:  every shard has the same number of samples: the first samples of the epoch's order are
//         repeated, one each in some shards.
//   drop: every shard has the same number of samples: the last ones of the order are left out,
//         different ones in every epoch.
//   keep: each sample is in one shard, and shards may differ by a sample: for evaluation, where
//         ranks need not take the same number of steps. A shard may be empty.
enum class UnevenShards { pad, drop, keep };

// Changes a sample in place, with the random numbers of (seed, epoch, index). Must be thread-safe.
using SampleTransform = std::function<void(Sample& sample, philox::Stream& random)>;

struct LoaderOptions {
  int64_t batch = 64;
  // Threads; 0 decodes in the calling thread, -1 means min(cores, 8). BINADE_LOADER_WORKERS in the
  // environment overrides it and `pool`, for trials (`binade bottleneck`); batches do not depend on
  // it.
  int workers = -1;
  std::shared_ptr<WorkerPool> pool = {};  // instead of `workers`: threads shared with other loaders
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t shuffle_buffer = 1000;  // for an IterableDataset: the number of rows shuffled at a time
  bool drop_last = false;         // skip an incomplete last batch
  SamplerPtr sampler = {};        // instead of `shuffle`; random access only
  std::optional<TokenBudget> budget = std::nullopt;  // instead of `batch`; random access only
  int prefetch = 4;                                  // batches ready or in progress ahead of use
  // Threads that read the files of the next 256 samples while others are decoded, to hide slow
  // storage: about its latency x samples per second of them. 0: workers read the files. No effect
  // on datasets without files (Dataset::encoded()).
  int read_ahead = 0;
  SampleTransform map = {};           // runs after decoding; default: none
  Transform transform = {};           // of the image and its masks, after `map`; default: none
  std::vector<float> mean = {};       // [channels] of pixels / 255; empty: 0
  std::vector<float> deviation = {};  // [channels]; empty: 1
  // The dtype of batch.images for pictures: f32, f16 or bf16, rounded once; or u8, the pixels as
  // they are, for data::finish_images on a device (data/augment/mix.h).
  DType image_dtype = DType::f32;
  bool channels_last = true;  // the strides of batch.images; false: row-major [N, C, H, W]
  // If > 0, a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where `transform` resizes it later, as
  // long as both sides of its crop stay this many times as long as after the resize (Pillow's
  // name; docs/data.md has the differences). Such pixels are not cached.
  double reducing_gap = 0;
  Collate collate = {};  // default: stack()
  BadFilePolicy bad_file = BadFilePolicy::fail;
  int64_t max_bad = 100;                   // more distinct bad files than this is an error
  double timeout_seconds = 60;             // per sample
  int64_t cache_bytes = int64_t(1) << 30;  // limit of decoded images kept in memory; 0: none
  Device device = {};                      // batches are copied there, on the loader's own stream
  int64_t shard = 0, shard_count = 1;      // reads positions shard, shard + shard_count, ...
  UnevenShards uneven_shards = UnevenShards::pad;
};

struct BadFile {
  int64_t index;
  std::string path, reason;
};

// Times since the loader was created. Worker stages are summed over the workers.
struct LoaderStats {
  int64_t batches = 0, samples = 0;
  int64_t decode_errors = 0;  // distinct bad files
  double decode_seconds = 0, transform_seconds = 0, normalize_seconds = 0;
  double wait_seconds = 0;   // next() waited for a batch
  double total_seconds = 0;  // from epoch() to the last batch, including the caller's work
  int workers = 0;
  bool more_workers_would_help = false;
};
// "1000 samples, decode 0.5 s, ...; more workers would help".
std::string to_string(const LoaderStats& stats);

class LoaderState;

// A loader serves one thread at a time: calls of next() and epoch() that overlap are an error. A
// child of fork() cannot use a loader whose workers its parent has started, and makes its own.
class Loader {
 public:
  // Throws Error on bad options and on an empty dataset; the message says where in the program this
  // loader is made. A dataset that is passed as a variable must outlive the loader; a temporary or
  // a shared_ptr is kept alive, even for a worker that is stuck in a read when the loader is
  // destroyed.
  Loader(DatasetPtr dataset, LoaderOptions options, SourceLine made = SourceLine::here());
  Loader(IterablePtr dataset, LoaderOptions options, SourceLine made = SourceLine::here());
  // Stops the workers. A worker stuck in get() for two seconds is abandoned.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  class Iterator;
  class Epoch;

  // Starts epoch `number` at batch `first_batch` and abandons an epoch in progress. Rows before
  // that batch are read again, but not decoded.
  Epoch epoch(int64_t number, int64_t first_batch = 0);
  // Starts epoch `number` after the first `samples` samples of its order, counted over all shards.
  // The rest is dealt to the present shards; their number and the batch size may have changed.
  // Throws Error for rows and under a TokenBudget.
  Epoch epoch_after(int64_t number, int64_t samples);
  // for (const Batch& batch : loader): each loop is the next epoch, from 0, or the one after that
  // of the last call of epoch().
  Iterator begin();
  std::default_sentinel_t end() const { return std::default_sentinel; }
  // The next batch of the epoch; false at its end. Throws Error with path, index and cause if a
  // sample failed or exceeded the timeout; after an error every further call throws. Not
  // thread-safe: throws at once if another thread is in next() or epoch(), whose work goes on.
  bool next(Batch& batch);

  // For this shard. -1 for an IterableDataset of unknown size. With a TokenBudget and several
  // shards the number of samples changes from epoch to epoch: this is the mean, rounded down.
  int64_t batches_per_epoch() const;
  int64_t samples_per_epoch() const;
  const LoaderOptions& options() const;
  // Identifies the whole data set, not the shard. The first call computes it (data/identity.h).
  const DataIdentity& identity() const;
  LoaderStats stats() const;
  std::vector<BadFile> bad_files() const;  // distinct, in the order of the stream

 private:
  explicit Loader(std::shared_ptr<LoaderState> state);

  std::shared_ptr<LoaderState> state_;  // shared with the workers
  Owned<Uploader> uploader_;            // for a device other than the CPU
  int64_t next_epoch_ = 0;
};

// An input iterator over the rest of the epoch.
class Loader::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  using pointer = const Batch*;
  using reference = const Batch&;

  explicit Iterator(Loader* loader) : loader_(loader) { ++*this; }
  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }
  Iterator& operator++() {
    if (!loader_->next(batch_)) {
      loader_ = nullptr;
    }
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return loader_ == nullptr; }

 private:
  Loader* loader_;
  Batch batch_;
};

// for (const Batch& batch : loader.epoch(0)) ...
class Loader::Epoch {
 public:
  explicit Epoch(Loader* loader) : loader_(loader) {}
  Iterator begin() { return Iterator(loader_); }
  std::default_sentinel_t end() const { return std::default_sentinel; }

 private:
  Loader* loader_;
};

inline Loader::Iterator Loader::begin() { return epoch(next_epoch_).begin(); }

}  // namespace binade::data
