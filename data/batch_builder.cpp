#include <binade/data/batch_builder.h>
#include <binade/data/permutation.h>

#include <algorithm>
#include <optional>

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
  Permutation shuffle;
  std::vector<Image> images;
  std::vector<int64_t> labels;
};

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      normalizer_(dataset_->channels(), options.mean, options.deviation) {
  const int64_t size = dataset_->size(), shards = options.shard_count;
  check(size > 0, "loader: the dataset is empty");
  check(options.batch >= 1, "loader: got batch ", options.batch, ", expected at least 1");
  check(shards >= 1 && options.shard >= 0 && options.shard < shards, "loader: got shard ",
        options.shard, " of ", shards, ", expected 0 <= shard < shard_count");
  const bool keep = options.uneven_shards == UnevenShards::keep;
  const bool one_more = options.uneven_shards == UnevenShards::pad
                            ? size % shards != 0
                            : keep && options.shard < size % shards;
  samples_ = size / shards + one_more;
  batches_ = samples_ / options.batch + (!options.drop_last && samples_ % options.batch != 0);
  check(batches_ > 0 || (keep && samples_ == 0), "loader: ", samples_,
        " samples give no full batch of ", options.batch,
        "; use a smaller batch or drop_last = false");
}

std::string BatchBuilder::describe(int64_t index) const {
  try {
    return dataset_->describe(index);
  } catch (const std::exception&) {
    return "unknown file";
  }
}

BuiltBatch BatchBuilder::build(int64_t epoch, int64_t number, SampleWatch& watch) const {
  BuiltBatch out;
  try {
    Job job{epoch, number, watch, out, Permutation(dataset_->size(), options_.seed, epoch), {}, {}};
    fill(job);
    if (!watch.cancelled()) {
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
  return options_.shuffle ? job.shuffle(position) : position;
}

void BatchBuilder::fill(Job& job) const {
  const int64_t first = job.number * options_.batch;
  const int64_t last = std::min(first + options_.batch, samples_);
  job.out.batch.first = first;
  const auto position = [&](int64_t i) { return i * options_.shard_count + options_.shard; };
  for (int64_t i = first; i < last && !job.watch.cancelled(); ++i) {
    if (!take(job, order(job, position(i))) && options_.bad_file == BadFilePolicy::replace) {
      replace(job, position(i));
    }
  }
  if (job.images.empty() && !job.watch.cancelled()) {
    replace(job, position(first));  // under `skip`, no batch is empty
  }
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

// Adds sample `index` to the job; false if it cannot be read and the policy is not `fail`.
bool BatchBuilder::take(Job& job, int64_t index) const {
  job.watch.begin(index);
  Sample sample;
  try {
    Timer timer(job.out.decode_seconds);
    sample = dataset_->get(index);
  } catch (const OutOfMemory&) {
    rethrow_named(index);
  } catch (const Error& error) {
    if (options_.bad_file == BadFilePolicy::fail) {
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
  job.images.push_back(std::move(sample.image));
  job.labels.push_back(sample.label);
  job.out.batch.indices.push_back(index);
  return true;
}

// Rethrows the exception in flight with index and path in its text.
void BatchBuilder::rethrow_named(int64_t index) const {
  const std::string path = describe(index);
  const auto named = [&](std::string_view cause) {
    return cause.find(path) == std::string_view::npos
               ? text("loader: sample ", index, " (", path, "): ", cause)
               : text("loader: sample ", index, ": ", cause);
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
  const Image& first = job.images.front();
  const auto count = static_cast<int64_t>(job.images.size());
  const Dims sizes = {count, dataset_->channels(), first.height, first.width};
  batch.images = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  batch.labels = empty({count}, DType::i64);
  batch.size = count;
  const int64_t pixels = int64_t(first.height) * first.width;
  float* y = batch.images.data<float>();
  for (size_t i = 0; i < job.images.size(); ++i) {
    const Image& image = job.images[i];
    check(image.height == first.height && image.width == first.width &&
              image.channels == dataset_->channels() &&
              static_cast<int64_t>(image.pixels.size()) == pixels * image.channels,
          "loader: sample ", batch.indices[i], " (", describe(batch.indices[i]), ") is ",
          image.height, " x ", image.width, " x ", image.channels, ", the batch began with ",
          first.height, " x ", first.width, " x ", dataset_->channels(),
          "; set an image size, so that all are resized");
    normalizer_.apply(image.pixels.data(), y, pixels);
    y += pixels * image.channels;
  }
  std::copy(job.labels.begin(), job.labels.end(), batch.labels.data<int64_t>());
}

}  // namespace binade::data
