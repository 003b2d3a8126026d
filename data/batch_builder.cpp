#include <binade/core/io/file_system.h>
#include <binade/data/batch_builder_internal.h>
#include <binade/data/permutation.h>
#include <binade/data/row_source_internal.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>

namespace binade::data {
namespace {

using Clock = SampleWatch::Clock;

// Adds the time of its scope to a counter.
class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~Timer() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  Clock::time_point start_;
};

}  // namespace

struct BatchBuilder::Job {
  int64_t epoch, number;
  SampleWatch& watch;
  BuiltBatch& out;
  std::optional<Permutation> shuffle;
  std::vector<Sample> samples;
};

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      channels_(dataset_->channels()),
      normalizer_(std::in_place, channels_, options.mean, options.deviation) {
  check(dataset_->size() > 0, "loader: the dataset is empty");
  check_options();
  count(dataset_->size());
}

BatchBuilder::BatchBuilder(std::shared_ptr<const IterableDataset> dataset,
                           const LoaderOptions& options)
    : iterable_(std::move(dataset)), options_(options) {
  check(iterable_ != nullptr, "loader: got no dataset");
  channels_ = iterable_->channels();
  if (channels_ > 0) {
    normalizer_.emplace(channels_, options.mean, options.deviation);
  } else {
    check(options.mean.empty() && options.deviation.empty() && !options.transform,
          "loader: got a mean, a deviation or a transform, which images have, for rows of numbers; "
          "change the numbers where rows are decoded");
  }
  constexpr int64_t kMaxBuffer = (int64_t(1) << 31) - 1;
  check(options.shuffle_buffer >= 1 && options.shuffle_buffer <= kMaxBuffer,
        "loader: got shuffle_buffer ", options.shuffle_buffer, ", expected 1 to ", kMaxBuffer);
  check_options();
}

void BatchBuilder::check_options() const {
  const LoaderOptions& o = options_;
  check(o.batch >= 1, "loader: got batch ", o.batch, ", expected at least 1");
  check(o.shard_count >= 1 && o.shard >= 0 && o.shard < o.shard_count, "loader: got shard ",
        o.shard, " of ", o.shard_count, ", expected 0 <= shard < shard_count");
}

// Counts for this shard if the dataset has `size` samples.
BatchBuilder::Counts BatchBuilder::count(int64_t size) const {
  const LoaderOptions& o = options_;
  const bool keep = o.uneven_shards == UnevenShards::keep;
  const bool one_more = o.uneven_shards == UnevenShards::pad
                            ? size % o.shard_count != 0
                            : keep && o.shard < size % o.shard_count;
  const int64_t samples = size / o.shard_count + one_more;
  const int64_t batches = samples / o.batch + (!o.drop_last && samples % o.batch != 0);
  check(batches > 0 || (keep && samples == 0), "loader: ", samples,
        " samples give no full batch of ", o.batch, "; use a smaller batch or drop_last = false");
  return {samples, batches};
}

int64_t BatchBuilder::samples() const {
  const int64_t size = dataset_ ? dataset_->size() : iterable_->size();
  return size < 0 ? -1 : count(size).samples;
}

int64_t BatchBuilder::batches() const {
  const int64_t size = dataset_ ? dataset_->size() : iterable_->size();
  return size < 0 ? -1 : count(size).batches;
}

std::shared_ptr<RowSource> BatchBuilder::open(int64_t epoch, int64_t first_batch) const {
  return iterable_ ? std::make_shared<RowSource>(iterable_, options_, epoch, first_batch) : nullptr;
}

const char* BatchBuilder::size_advice() const {
  return channels_ > 0 ? "; set an image size, so that all are resized" : "";
}

std::string BatchBuilder::describe(int64_t index) const {
  try {
    return dataset_ ? dataset_->describe(index) : iterable_->describe(index);
  } catch (const std::exception&) {
    return "unknown file";
  }
}

DataIdentity BatchBuilder::identity() const {
  return dataset_ ? identify(*dataset_) : iterable_->identity();
}

BuiltBatch BatchBuilder::build(int64_t epoch, int64_t number, SampleWatch& watch,
                               RowSource* rows) const {
  BuiltBatch out;
  try {
    Job job{epoch, number, watch, out, {}, {}};
    if (rows) {
      fill_from(job, *rows);
    } else {
      job.shuffle.emplace(dataset_->size(), options_.seed, epoch);
      fill(job);
    }
    if (!watch.cancelled() && !out.is_end) {
      assemble(job);
    }
  } catch (...) {
    out.batch = {};
    out.error = std::current_exception();
  }
  watch.begin(-1);
  return out;
}

// The dataset index at a position of the epoch; positions wrap around.
int64_t BatchBuilder::order(const Job& job, int64_t position) const {
  position %= dataset_->size();
  return options_.shuffle ? (*job.shuffle)(position) : position;
}

void BatchBuilder::fill(Job& job) const {
  const int64_t first = job.number * options_.batch;
  const int64_t last = std::min(first + options_.batch, samples());
  job.out.batch.first = first;
  const auto position = [&](int64_t i) { return i * options_.shard_count + options_.shard; };
  for (int64_t i = first; i < last && !job.watch.cancelled(); ++i) {
    if (!take(job, order(job, position(i))) && options_.bad_file == BadFilePolicy::replace) {
      replace(job, position(i));
    }
  }
  if (job.samples.empty() && !job.watch.cancelled()) {
    replace(job, position(first));  // with `skip` no batch is empty
  }
}

void BatchBuilder::fill_from(Job& job, RowSource& source) const {
  const std::vector<Row> rows = source.take(job.number, job.watch);
  const size_t count = rows.size();
  job.out.batch.first = job.number * options_.batch;
  job.out.is_end =
      count == 0 || (options_.drop_last && static_cast<int64_t>(count) < options_.batch);
  const auto take_row = [&](size_t i) {
    const Row& row = rows[i % count];
    return take(job, row.index, [&] { return iterable_->decode(row.bytes, row.index); });
  };
  for (size_t i = 0; i < count && !job.out.is_end && !job.watch.cancelled(); ++i) {
    const bool replaces = !take_row(i) && options_.bad_file == BadFilePolicy::replace;
    for (size_t step = 1; replaces && step < count && !take_row(i + step); ++step) {
    }
  }
  check(!job.samples.empty() || job.out.is_end || job.watch.cancelled(),
        "loader: no readable row in the batch, the last error: ",
        job.out.bad.empty() ? "" : job.out.bad.back().reason);
}

// Adds the first readable sample after a position, in the order of the epoch.
void BatchBuilder::replace(Job& job, int64_t position) const {
  const int64_t size = dataset_->size();
  for (int64_t step = 1; step < size && !job.watch.cancelled(); ++step) {
    if (take(job, order(job, position + step))) {
      return;
    }
    check(static_cast<int64_t>(job.out.bad.size()) <= options_.max_bad, "loader: more than ",
          options_.max_bad,
          " unreadable files in one batch, the last: ", job.out.bad.back().reason);
  }
  check(job.watch.cancelled(), "loader: no readable sample in the dataset, the last error: ",
        job.out.bad.empty() ? "" : job.out.bad.back().reason);
}

bool BatchBuilder::take(Job& job, int64_t index) const {
  return take(job, index, [&] { return dataset_->get(index); });
}

// Adds sample `index` to the job; false if it cannot be read and the policy is not `fail`.
template <class Get>
bool BatchBuilder::take(Job& job, int64_t index, Get&& get) const {
  job.watch.begin(index);
  Sample sample;
  try {
    Timer timer(job.out.decode_seconds);
    sample = get();
  } catch (const OutOfMemory&) {
    rethrow_named(index);
  } catch (const Error& error) {
    const auto* file = dynamic_cast<const FileError*>(&error);
    if (options_.bad_file == BadFilePolicy::fail || (file && file->is_out_of_resources())) {
      rethrow_named(index);
    }
    job.out.bad.push_back({index, describe(index), error.what()});
    return false;
  } catch (...) {
    rethrow_named(index);
  }
  try {
    if (options_.transform) {
      Timer timer(job.out.transform_seconds);
      philox::Stream random = sample_stream(options_.seed, job.epoch, index);
      options_.transform(sample.image, random);
    }
  } catch (...) {
    rethrow_named(index);
  }
  job.samples.push_back(std::move(sample));
  job.out.batch.indices.push_back(index);
  return true;
}

// Rethrows the current exception with index and path added to its text.
void BatchBuilder::rethrow_named(int64_t index) const {
  const std::string path = printable(describe(index));
  const auto named = [&](std::string_view cause) {
    return cause.find(path) == std::string_view::npos
               ? text("loader: sample ", index, " (", path, "): ", printable(cause))
               : text("loader: sample ", index, ": ", printable(cause));
  };
  try {
    throw;
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(named(error.what()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(named("out of memory"));
  } catch (const std::exception& error) {
    throw Error(named(error.what()));
  } catch (...) {
    throw Error(named("unknown exception"));
  }
}

void BatchBuilder::assemble(Job& job) const {
  Timer timer(job.out.normalize_seconds);
  Batch& batch = job.out.batch;
  batch.size = static_cast<int64_t>(job.samples.size());
  batch.labels = empty({batch.size}, DType::i64);
  std::transform(job.samples.begin(), job.samples.end(), batch.labels.data<int64_t>(),
                 [](const Sample& sample) { return sample.label; });
  channels_ > 0 ? assemble_images(job) : assemble_values(job);
}

void BatchBuilder::assemble_images(Job& job) const {
  Batch& batch = job.out.batch;
  const Image& first = job.samples.front().image;
  const Dims sizes = {batch.size, channels_, first.height, first.width};
  batch.images = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  const int64_t pixels = int64_t(first.height) * first.width;
  float* y = batch.images.data<float>();
  for (size_t i = 0; i < job.samples.size(); ++i) {
    const Image& image = job.samples[i].image;
    check(image.height == first.height && image.width == first.width &&
              image.channels == channels_ &&
              static_cast<int64_t>(image.pixels.size()) == pixels * image.channels,
          "loader: sample ", batch.indices[i], " (", describe(batch.indices[i]), ") is ",
          image.height, " x ", image.width, " x ", image.channels, ", the batch began with ",
          first.height, " x ", first.width, " x ", channels_, size_advice());
    normalizer_->apply(image.pixels.data(), y, pixels);
    y += pixels * image.channels;
  }
}

void BatchBuilder::assemble_values(Job& job) const {
  Batch& batch = job.out.batch;
  const size_t width = job.samples.front().values.size();
  batch.images = empty({batch.size, static_cast<int64_t>(width)}, DType::f32);
  float* y = batch.images.data<float>();
  for (size_t i = 0; i < job.samples.size(); ++i) {
    const std::vector<float>& values = job.samples[i].values;
    check(values.size() == width, "loader: sample ", batch.indices[i], " (",
          describe(batch.indices[i]), ") has ", values.size(), " values, the batch began with ",
          width);
    y = std::copy(values.begin(), values.end(), y);
  }
}

}  // namespace binade::data
