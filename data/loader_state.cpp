#include <binade/core/observe/timeline.h>
#include <binade/data/loader_state_internal.h>
#include <binade/data/workers/read_ahead_internal.h>
#include <binade/data/workers/worker_pool.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace binade::data {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(2000);
constexpr int kMaxWorkers = 256;

LoaderOptions checked(LoaderOptions options) {
  check(options.workers >= -1 && options.workers <= kMaxWorkers, "loader: got workers ",
        options.workers, ", expected -1 to ", kMaxWorkers);
  check(options.prefetch >= 1 && options.prefetch <= 4096, "loader: got prefetch ",
        options.prefetch, ", expected 1 to 4096");
  check(options.max_bad >= 0, "loader: got max_bad ", options.max_bad, ", expected at least 0");
  check(options.timeout_seconds > 0 && options.timeout_seconds <= 1e6,
        "loader: got timeout_seconds ", options.timeout_seconds, ", expected 0 to 1e6");
  check(options.read_ahead >= 0 && options.read_ahead <= kMaxWorkers, "loader: got read_ahead ",
        options.read_ahead, ", expected 0 to ", kMaxWorkers, " threads");
  check(options.pool == nullptr || options.workers == -1, "loader: got a pool and workers ",
        options.workers, ", expected one of them: the pool has its own number of threads");
  if (const char* tried = std::getenv("BINADE_LOADER_WORKERS")) {
    options.workers = std::clamp(std::atoi(tried), 0, kMaxWorkers);
    options.pool = nullptr;  // it has another number
  }
  if (options.workers < 0) {
    options.workers = options.pool ? options.pool->threads() : default_workers();
  }
  return options;
}

std::shared_ptr<const Dataset> with_cache(std::shared_ptr<const Dataset> dataset, int64_t bytes) {
  check(dataset != nullptr, "loader: got no dataset");
  if (bytes <= 0 || dataset->in_memory()) {
    return dataset;
  }
  return std::make_shared<CachedDataset>(std::move(dataset), bytes);
}

std::shared_ptr<WorkerCrew> own_crew(int workers) {
  return workers == 0 ? nullptr : std::make_shared<WorkerCrew>(workers);
}

double seconds_between(SampleWatch::Clock::time_point from, SampleWatch::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// One call of next() or start_epoch(). It throws where a wait could never end: in a forked process,
// which has no workers, or beside a second thread, which would take the batch away.
class LoaderState::Entry {
 public:
  explicit Entry(LoaderState& state) : state_(state) {
    check(state.has_its_workers(),
          "loader: it was used before fork(), and its workers are threads of the parent process; "
          "make a loader in the child, or use workers = 0");
    check(!state.entered_.exchange(true, std::memory_order_acquire),
          "loader: next() or epoch() was called while another thread is in one of them; use a "
          "loader from one thread at a time, or give each thread its own, with a shard");
  }
  ~Entry() { state_.entered_.store(false, std::memory_order_release); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  LoaderState& state_;
};

LoaderState::LoaderState(std::shared_ptr<const Dataset> dataset, LoaderOptions given)
    : options(checked(std::move(given))),
      builder(with_cache(std::move(dataset), options.cache_bytes), options),
      crew_(options.pool ? options.pool->crew_ : own_crew(options.workers)),
      ring_(static_cast<size_t>(std::max(options.prefetch, options.workers))) {
  stats_.workers = options.workers;
}

LoaderState::LoaderState(std::shared_ptr<const IterableDataset> dataset, LoaderOptions given)
    : options(checked(std::move(given))),
      builder(std::move(dataset), options),
      crew_(options.pool ? options.pool->crew_ : own_crew(options.workers)),
      ring_(static_cast<size_t>(std::max(options.prefetch, options.workers))) {
  stats_.workers = options.workers;
}

const DataIdentity& LoaderState::identity() {
  std::call_once(identified_, [this] { identity_ = builder.identity(); });
  return identity_;
}

void LoaderState::start_epoch(int64_t number, int64_t first_batch, int64_t done) {
  constexpr int64_t kMaxEpoch = int64_t(1) << 23;
  check(number >= 0 && number < kMaxEpoch, "loader: got epoch ", number,
        ", expected 0 to 2^23 - 1");
  const int64_t batches = builder.batches();
  check(first_batch >= 0 && (batches < 0 || first_batch <= batches), "loader: got first batch ",
        first_batch, ", expected at most ", batches);
  const Entry entry(*this);
  EpochSource source = builder.open(number, first_batch, done);
  std::unique_lock lock(mutex_);
  check(!failed_, "loader: stopped by an earlier error");
  ++generation_;
  cancel_work();
  const EpochSource before = std::exchange(source_, {});
  for (Slot& slot : ring_) {
    slot = {};
  }
  if (options.read_ahead > 0 && source.plan) {
    source.read_ahead = std::make_shared<ReadAhead>(builder.dataset(), source.plan, first_batch,
                                                    options.read_ahead);
  }
  if (crew_) {  // a pool may have been resized
    stats_.workers = crew_->threads();
    ring_.resize(std::max(ring_.size(), static_cast<size_t>(stats_.workers)));
  }
  queued_ = 0;
  epoch_ = number;
  next_claim_ = next_delivery_ = first_batch;
  source_ = std::move(source);
  end_ = source_.rows ? std::numeric_limits<int64_t>::max() : source_.plan->batches();
  open_ = true;
  last_time_ = Clock::now();
  lock.unlock();  // of what was before, threads may end
  if (crew_) {
    crew_->join(weak_from_this());
    crew_->notify_all();
  }
}

void LoaderState::cancel_work() {
  for (Slot& slot : ring_) {
    if (slot.worker != nullptr && !slot.ready) {
      slot.worker->scratch.watch.cancel();
    }
  }
  scratch_.watch.cancel();
  if (source_.rows) {
    source_.rows->cancel();
  }
  if (source_.read_ahead) {
    source_.read_ahead->cancel();
  }
}

bool LoaderState::has_work() const {
  const auto window = static_cast<int64_t>(ring_.size());
  return !stop_ && open_ && !failed_ && next_claim_ < end_ && next_claim_ < next_delivery_ + window;
}

bool LoaderState::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  if (!has_work()) {
    return false;
  }
  const BuildTask task{epoch_, next_claim_++, source_};
  const int64_t generation = generation_;
  Slot& slot = ring_[static_cast<size_t>(task.number) % ring_.size()];
  slot.worker = &worker;
  worker.scratch.watch.rearm();
  lock.unlock();
  builder.build(task, worker.scratch, worker.built);
  lock.lock();
  if (generation == generation_) {
    end_ = worker.built.is_end ? std::min(end_, task.number) : end_;
    std::swap(slot.built, worker.built);
    slot.ready = true;
    ++queued_;
    note_queue();
    ready_.notify_all();
  } else {
    lock.unlock();
    worker.built.clear();
  }
  return true;
}

bool LoaderState::next(Batch& batch) {
  const Entry entry(*this);
  std::unique_lock lock(mutex_);
  check(!failed_, "loader: stopped by an earlier error");
  check(open_,
        "loader: no epoch is under way; call epoch() first, and give a loop or a Trainer that runs "
        "inside another one a loader of its own");
  BuiltBatch::clear_batch(batch);
  bool is_end = next_delivery_ >= end_;
  try {
    BuiltBatch* built = nullptr;
    if (!is_end && options.workers == 0) {
      scratch_.watch.rearm();
      builder.build({epoch_, next_delivery_, source_}, scratch_, built_);
      built = &built_;
    } else if (!is_end) {
      built = &wait_for_batch(lock);
    }
    is_end = is_end || built->is_end;
    if (!is_end) {
      deliver(*built, batch);
    }
  } catch (...) {
    failed_ = true;
    batch = {};
    cancel_work();
    throw;
  }
  note_time();
  open_ = !is_end;
  return !is_end;
}

BuiltBatch& LoaderState::wait_for_batch(std::unique_lock<std::mutex>& lock) {
  Slot& slot = ring_[static_cast<size_t>(next_delivery_ % static_cast<int64_t>(ring_.size()))];
  const Clock::time_point start = Clock::now();
  const TimelineSpan span(Activity::data, TimelineEvent::data, "wait for a batch");
  const auto timeout = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options.timeout_seconds));
  while (!slot.ready) {
    const SampleWatch* watch = slot.worker != nullptr ? &slot.worker->scratch.watch : nullptr;
    const bool reading = watch != nullptr && watch->index() >= 0;
    const Clock::time_point since = reading ? std::max(watch->since(), start) : start;
    // The worker may reach another sample meanwhile, so wake up at the deadline of the one seen
    // last.
    if (ready_.wait_until(lock, since + timeout) == std::cv_status::timeout && !slot.ready) {
      check_timeout(slot, start);
    }
  }
  stats_.wait_seconds += seconds_between(start, Clock::now());
  slot.ready = false;
  --queued_;
  note_queue();
  slot.worker = nullptr;
  return slot.built;
}

// The number of batches that are ready, for the timeline. REQUIRES: mutex_ is held.
void LoaderState::note_queue() const {
  if (binade::detail::timeline_has(Activity::data)) [[unlikely]] {
    binade::detail::timeline_counter("loader queue", static_cast<double>(queued_));
  }
}

// Throws if the sample that next() waits for exceeds the timeout.
void LoaderState::check_timeout(const Slot& slot, Clock::time_point wait_start) const {
  const auto expired = [&](Clock::time_point since) {
    return seconds_between(std::max(since, wait_start), Clock::now()) >= options.timeout_seconds;
  };
  if (slot.worker != nullptr) {
    if (expired(slot.worker->scratch.watch.since())) {
      fail_stuck(slot.worker->scratch.watch, true);
    }
    return;
  }
  // No worker has claimed the batch: all of them are still busy with an earlier epoch, or with
  // other loaders.
  crew_->for_each([&](const Worker& worker) {
    const SampleWatch& watch = worker.scratch.watch;
    if (watch.index() >= 0 && expired(watch.since())) {
      fail_stuck(watch, worker.client.load() == this);
    }
  });
}

void LoaderState::fail_stuck(const SampleWatch& watch, bool is_mine) const {
  const int64_t index = watch.index();
  const auto rounded = [](double seconds) { return std::round(seconds * 100) / 100; };
  const double seconds = rounded(seconds_between(watch.since(), Clock::now()));
  const std::string wait = text("loader: no batch for ", rounded(options.timeout_seconds), " s: ");
  check(is_mine, wait, "a thread of the shared pool has been at a sample of another loader for ",
        seconds, " s");
  fail(wait, "a worker has been at sample ", index, index < 0 ? "" : " (",
       index < 0 ? "" : builder.describe(index), index < 0 ? "" : ")", " for ", seconds,
       " s; is the file on a device that hangs?");
}

void LoaderState::deliver(BuiltBatch& built, Batch& batch) {
  for (BadFile& file : built.bad) {
    if (bad_indices_.insert(file.index).second) {
      bad_.push_back(std::move(file));
    }
  }
  stats_.decode_errors = static_cast<int64_t>(bad_.size());
  if (built.error) {
    std::rethrow_exception(built.error);
  }
  if (static_cast<int64_t>(bad_.size()) > options.max_bad) {
    fail("loader: ", bad_.size(), " unreadable files, the limit is ", options.max_bad,
         "; the last: ", bad_.back().reason);
  }
  std::swap(batch, built.batch);
  if (built.has_pictures && !options.collate) {
    check_image_sizes(batch);
  }
  ++next_delivery_;
  if (binade::detail::timeline_has(Activity::data)) [[unlikely]] {
    binade::detail::timeline_counter("batch", static_cast<double>(batch.size));
  }
  ++stats_.batches;
  stats_.samples += batch.size;
  stats_.decode_seconds += built.decode_seconds;
  stats_.transform_seconds += built.transform_seconds;
  stats_.normalize_seconds += built.normalize_seconds;
  if (crew_) {
    crew_->notify_one();
  }
}

// Throws unless all batches have pictures of one size.
void LoaderState::check_image_sizes(const Batch& batch) {
  Dims sizes;
  for (int i = 1; i < batch.images.dim(); ++i) {
    sizes.push_back(batch.images.size(i));
  }
  if (image_sizes_.empty()) {
    image_sizes_ = sizes;
  }
  if (sizes == image_sizes_) {
    return;
  }
  const bool pictures = sizes.size() == 3;
  fail("loader: sample ", batch.indices[0], " (", builder.describe(batch.indices[0]), ") is ",
       sizes, pictures ? " (channels, height, width), " : " (values), ", "earlier batches are ",
       image_sizes_, pictures ? "; set an image size, so that all are resized" : "");
}

void LoaderState::note_time() {
  const Clock::time_point now = Clock::now();
  stats_.total_seconds += seconds_between(last_time_, now);
  last_time_ = now;
}

LoaderStats LoaderState::stats() const {
  std::lock_guard lock(mutex_);
  constexpr double kWorthwhile = 0.1;  // share of the time spent waiting
  LoaderStats stats = stats_;
  const double waited = options.workers == 0 ? stats.decode_seconds + stats.transform_seconds +
                                                   stats.normalize_seconds
                                             : stats.wait_seconds;
  stats.more_workers_would_help =
      stats.workers < cores_ && waited > kWorthwhile * stats.total_seconds;
  return stats;
}

std::vector<BadFile> LoaderState::bad_files() const {
  std::lock_guard lock(mutex_);
  return bad_;
}

void LoaderState::close() {
  if (!has_its_workers()) {
    return;  // threads of the parent; one may have held the lock at the fork
  }
  std::unique_lock lock(mutex_);
  stop_ = true;
  cancel_work();
  const EpochSource source = std::exchange(source_, {});
  lock.unlock();  // threads that read ahead end with the last owner of the source
  if (crew_) {
    crew_->leave(*this, kPatience);
  }
}

}  // namespace binade::data
