#include <binade/core/io/file_system.h>
#include <binade/core/observe/timeline.h>
#include <binade/data/batch_builder_internal.h>
#include <binade/data/collate/collate_internal.h>
#include <binade/data/fields_internal.h>
#include <binade/data/row_source_internal.h>
#include <binade/data/sample_internal.h>
#include <binade/data/window/image_request.h>
#include <binade/data/workers/read_ahead_internal.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>

namespace binade::data {
namespace {

using Clock = SampleWatch::Clock;

// Adds the time of its scope to a counter, and to the timeline as a stage of the loader.
class Timer {
 public:
  Timer(double& seconds, const char* stage)
      : span_(Activity::data, TimelineEvent::data, stage),
        seconds_(seconds),
        start_(Clock::now()) {}
  ~Timer() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  TimelineSpan span_;
  double& seconds_;
  Clock::time_point start_;
};

// True if the error says that the sample is bad, not that the machine lacks something.
bool is_bad_sample(const Error& error) {
  const auto* file = dynamic_cast<const FileError*>(&error);
  return dynamic_cast<const OutOfMemory*>(&error) == nullptr &&
         !(file && file->is_out_of_resources());
}

}  // namespace

struct BatchBuilder::Job {
  int64_t epoch, number;
  SampleWatch& watch;
  BuiltBatch& out;
  const EpochPlan* plan;
  ReadAhead* read_ahead;
  std::vector<Sample>& memory;  // the samples, and others behind them, whose memory is reused
  size_t count = 0;

  std::span<const Sample> samples() const { return std::span(memory).first(count); }
  // The next sample to fill: it is empty, but its image may already own memory.
  Sample& next() {
    if (count == memory.size()) {
      memory.emplace_back();
    }
    Sample& sample = memory[count];
    sample.label = kNoLabel;
    sample.values.clear();
    sample.fields.clear();
    sample.masks.clear();
    return sample;
  }
};

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  check(dataset_->size() > 0, "loader: the dataset is empty");
  check_options(dataset_->channels());
  if (options.budget) {
    check(!options.sampler && !options.drop_last,
          "loader: got a budget and also a sampler or drop_last, expected one of them");
    check_budget(*options.budget);
    plans_ = budget_plans(measure(), options, [this](int64_t i) { return named(i); });
  } else {
    plans_ = even_plans(dataset_->size(), options);
  }
}

BatchBuilder::BatchBuilder(std::shared_ptr<const IterableDataset> dataset,
                           const LoaderOptions& options)
    : iterable_(std::move(dataset)), options_(options) {
  check(iterable_ != nullptr, "loader: got no dataset");
  check(!options.sampler && !options.budget,
        "loader: got a sampler or a budget, which need random access, for rows that come one after "
        "another; data::collect() reads them into memory");
  constexpr int64_t kMaxBuffer = (int64_t(1) << 31) - 1;
  check(options.shuffle_buffer >= 1 && options.shuffle_buffer <= kMaxBuffer,
        "loader: got shuffle_buffer ", options.shuffle_buffer, ", expected 1 to ", kMaxBuffer);
  check_options(iterable_->channels());
}

void BatchBuilder::check_options(int channels) {
  const LoaderOptions& o = options_;
  check(o.batch >= 1, "loader: got batch ", o.batch, ", expected at least 1");
  check(o.shard_count >= 1 && o.shard >= 0 && o.shard < o.shard_count, "loader: got shard ",
        o.shard, " of ", o.shard_count, ", expected 0 <= shard < shard_count");
  check(o.reducing_gap == 0 || (o.reducing_gap >= 1 && o.reducing_gap <= 1000),
        "loader: got reducing_gap ", o.reducing_gap, ", expected 0 or 1 to 1000; 2 is usual");
  assembler_.emplace(channels, o);
  check(channels != 0 || (o.mean.empty() && o.deviation.empty() && !o.transform),
        "loader: got a mean, a deviation or a transform, which images have, for rows of numbers or "
        "other fields; change them by LoaderOptions::map, or where they are made");
}

// The length of each sample, for the budget. A sample that cannot be read counts as 0 if the policy
// allows that.
std::vector<int64_t> BatchBuilder::measure() const {
  const std::string& field = options_.budget->field;
  std::vector<int64_t> lengths(static_cast<size_t>(dataset_->size()));
  const auto measured = [&](int64_t index) -> int64_t {
    if (const std::optional<int64_t> length = dataset_->length(index, field)) {
      return *length;
    }
    const Sample sample = dataset_->get(index);
    const Tensor* tokens = find_field(sample.fields, field);
    check(tokens != nullptr && tokens->dim() > 0, "expected a field '", field,
          "' with at least one dimension for the budget (TokenBudget::field), got the fields: ",
          names_of(sample.fields));
    return tokens->size(0);
  };
  constexpr int64_t kGrain = 64;
  kernels::parallel_for(dataset_->size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      try {
        lengths[static_cast<size_t>(i)] = measured(i);
      } catch (const Error& error) {
        if (options_.bad_file == BadFilePolicy::fail || !is_bad_sample(error)) {
          rethrow_named(i);
        }
      } catch (...) {
        rethrow_named(i);
      }
    }
  });
  return lengths;
}

int64_t BatchBuilder::samples() const {
  const int64_t size = iterable_ ? iterable_->size() : 0;
  return plans_ ? plans_->samples() : size < 0 ? -1 : count_batches(size, options_).samples;
}

int64_t BatchBuilder::batches() const {
  const int64_t size = iterable_ ? iterable_->size() : 0;
  return plans_ ? plans_->batches() : size < 0 ? -1 : count_batches(size, options_).batches;
}

EpochSource BatchBuilder::open(int64_t epoch, int64_t first_batch, int64_t done) const {
  if (iterable_) {
    check(done == 0, "loader: got ", done,
          " samples of the epoch that were used, which needs random access: continue with "
          "epoch(number, batch), or collect() the rows");
    return {.rows = std::make_shared<RowSource>(iterable_, options_, epoch, first_batch)};
  }
  return {.plan = plans_->epoch(epoch, done)};
}

std::string BatchBuilder::describe(int64_t index) const {
  try {
    return dataset_ ? dataset_->describe(index) : iterable_->describe(index);
  } catch (const std::exception&) {
    return "unknown file";
  }
}

// "sample 7 (a.png)" in messages.
std::string BatchBuilder::named(int64_t index) const {
  const std::string sample = text("sample ", index), origin = printable(describe(index));
  return origin == sample ? sample : text(sample, " (", origin, ")");
}

DataIdentity BatchBuilder::identity() const {
  return dataset_ ? identify(*dataset_) : iterable_->identity();
}

void BatchBuilder::build(const BuildTask& task, BuildScratch& scratch, BuiltBatch& out) const {
  out.clear();
  const EpochSource& source = task.source;
  Job job{
      task.epoch,     task.number, scratch.watch, out, source.plan.get(), source.read_ahead.get(),
      scratch.samples};
  try {
    out.batch.epoch = task.epoch;
    if (source.rows) {
      fill_from(job, *source.rows);
    } else {
      fill(job);
    }
    if (!job.watch.cancelled() && !out.is_end) {
      assemble(job);
    }
  } catch (...) {
    out.batch = {};
    out.error = std::current_exception();
  }
  job.watch.begin(-1);
}

void BatchBuilder::fill(Job& job) const {
  const EpochPlan::Places places = job.plan->batch(job.number);
  job.out.batch.first = places.first;
  if (job.read_ahead == nullptr && job.number + 1 < job.plan->batches()) {
    will_need(*job.plan, job.number + 1);
  }
  for (int64_t i = 0; i < places.count && !job.watch.cancelled(); ++i) {
    const int64_t position = places.begin + i * places.stride;
    const size_t before = job.count;
    if (!take_at(job, position, places.first + i) && options_.bad_file == BadFilePolicy::replace) {
      replace(job, position);
    }
    if (i >= places.count - places.repeated) {
      job.out.batch.repeated += static_cast<int64_t>(job.count - before);
    }
  }
  if (job.count == 0 && !job.watch.cancelled()) {
    replace(job, places.begin);  // with `skip` no batch is empty
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
    return take(job, row.index, row.index, [&](ImageRequest&, Sample& sample) {
      sample = iterable_->decode(row.bytes, row.index);
    });
  };
  for (size_t i = 0; i < count && !job.out.is_end && !job.watch.cancelled(); ++i) {
    const size_t before = job.count;
    const bool replaces = !take_row(i) && options_.bad_file == BadFilePolicy::replace;
    for (size_t step = 1; replaces && step < count && !take_row(i + step); ++step) {
    }
    job.out.batch.repeated = rows[i].is_repeated && job.count > before ? 1 : 0;
  }
  check(job.count > 0 || job.out.is_end || job.watch.cancelled(),
        "loader: no readable row in the batch, the last error: ",
        job.out.bad.empty() ? "" : job.out.bad.back().reason);
}

// Adds the first readable sample after a position, in the order of the epoch.
void BatchBuilder::replace(Job& job, int64_t position) const {
  for (int64_t step = 1; step < job.plan->size() && !job.watch.cancelled(); ++step) {
    if (take_at(job, position + step)) {
      return;
    }
    check(static_cast<int64_t>(job.out.bad.size()) <= options_.max_bad, "loader: more than ",
          options_.max_bad,
          " unreadable files in one batch, the last: ", job.out.bad.back().reason);
  }
  check(job.watch.cancelled(), "loader: no readable sample in the dataset, the last error: ",
        job.out.bad.empty() ? "" : job.out.bad.back().reason);
}

// Adds the sample at a position of the epoch; positions wrap around.
bool BatchBuilder::take_at(Job& job, int64_t position, int64_t place) const {
  position %= job.plan->size();
  const int64_t index = job.plan->index(position);
  // A sampler may draw a sample several times: each time it gets other random numbers.
  return take(job, index, options_.sampler ? position : index,
              [&](ImageRequest& request, Sample& sample) {
                read_sample(job, index, place, request, sample);
              });
}

// Reads a sample; from memory if its file was read ahead.
void BatchBuilder::read_sample(Job& job, int64_t index, int64_t place, ImageRequest& request,
                               Sample& sample) const {
  std::optional<std::vector<uint8_t>> file;
  if (job.read_ahead != nullptr && place != kNoPlace) {
    file = job.read_ahead->take(place);
  }
  if (job.watch.cancelled()) {
    return;
  }
  if (file) {
    dataset_->read_encoded(index, *file, request, sample);
  } else {
    dataset_->read(index, request, sample);
  }
}

// Tells the dataset which samples a later batch needs.
void BatchBuilder::will_need(const EpochPlan& plan, int64_t number) const {
  const EpochPlan::Places places = plan.batch(number);
  for (int64_t i = 0; i < places.count; ++i) {
    if (!dataset_->will_need(plan.index((places.begin + i * places.stride) % plan.size()))) {
      return;
    }
  }
}

// Reads a sample; false if it cannot be read and the policy is not `fail`.
template <class Get>
bool BatchBuilder::read(Job& job, int64_t index, ImageRequest& request, const Get& get,
                        Sample& sample) const {
  try {
    Timer timer(job.out.decode_seconds, "decode");
    get(request, sample);
  } catch (const Error& error) {
    if (options_.bad_file == BadFilePolicy::fail || request.has_failed() || !is_bad_sample(error)) {
      rethrow_named(index);
    }
    job.out.bad.push_back({index, describe(index), error.what()});
    return false;
  } catch (...) {
    rethrow_named(index);
  }
  return true;
}

// Adds sample `index` to the job; false if it cannot be read and the policy is not `fail`. Its
// random numbers are those of `draw`.
template <class Get>
bool BatchBuilder::take(Job& job, int64_t index, int64_t draw, Get&& get) const {
  static const Transform kNone;
  job.watch.begin(index);
  philox::Stream random = sample_stream(options_.seed, job.epoch, draw);
  // `map` comes before the transform and sees the whole image.
  ImageRequest request(options_.map ? kNone : options_.transform, random, options_.reducing_gap);
  Sample& sample = job.next();
  if (!read(job, index, request, get, sample)) {
    return false;
  }
  if (job.watch.cancelled()) {
    return true;  // the sample may be incomplete, and nobody will see it
  }
  try {
    change(job, sample, request.steps(), random);
  } catch (...) {
    rethrow_named(index);
  }
  ++job.count;
  job.out.batch.indices.push_back(index);
  return true;
}

// Applies `map` and the steps of the transform that are not done yet.
void BatchBuilder::change(Job& job, Sample& sample, size_t first_step,
                          const philox::Stream& random) const {
  Timer timer(job.out.transform_seconds, "transform");
  if (options_.map) {
    philox::Stream own =
        random;  // of (seed, epoch, sample); the steps of the transform have others
    options_.map(sample, own);
  }
  if (options_.transform) {
    check(!sample.image.pixels.empty(),
          "got a transform, which changes images, for a sample without an image; change other "
          "fields by LoaderOptions::map");
    options_.transform.apply_from(first_step, sample, random);
  }
  move_boxes_to_fields(sample);
}

// Rethrows the current exception with index and path added to its text.
void BatchBuilder::rethrow_named(int64_t index) const {
  const std::string path = printable(describe(index));
  const auto with_name = [&](std::string_view cause) {
    return cause.find(path) == std::string_view::npos
               ? text("loader: ", named(index), ": ", printable(cause))
               : text("loader: sample ", index, ": ", printable(cause));
  };
  try {
    throw;
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(with_name(error.what()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(with_name("out of memory"));
  } catch (const std::exception& error) {
    throw Error(with_name(error.what()));
  } catch (...) {
    throw Error(with_name("unknown exception"));
  }
}

void BatchBuilder::assemble(Job& job) const {
  Timer timer(job.out.normalize_seconds, "collate");
  try {
    assembler_->assemble(job.samples(), job.out);
  } catch (const SampleError& error) {
    const int64_t index = job.out.batch.indices[error.place()];
    fail("loader: ", named(index), " ", printable(error.verb()));
  } catch (const CollateError& error) {
    fail("loader: in the collate function, for the batch of ", job.count,
         " samples that begins with ", named(job.out.batch.indices.front()), ": ",
         printable(error.cause()));
  }
}

}  // namespace binade::data
