// Hooks of the leaves count the gradients of each bucket. The last hook of a backward waits for the
// reducing thread, so gradients are averages when backward returns.
#include <binade/core/autograd/hooks.h>
#include <binade/core/device/stream.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/parallel/compare_parameters_internal.h>
#include <binade/dist/parallel/distributed_data_parallel.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace binade::dist {
namespace {

using Clock = std::chrono::steady_clock;

// A range of one segment's gradients.
struct Bucket {
  int segment;
  int64_t begin, end;           // elements
  std::vector<size_t> members;  // trainable parameters, last first
  size_t waiting = 0;           // members whose gradient is not final yet
  Tensor gradients;             // in the arena; sharded: allocated while it holds gradients
  std::vector<int64_t> bounds;  // sharded: which part of it each rank owns
};

int64_t end_of(const Parameter& p) {
  constexpr int64_t kUnit = Arena::kAlignment;
  return p.offset + (p.numel() + kUnit - 1) / kUnit * kUnit;
}

// Goes from the last parameter to the first. A new bucket starts if the bucket is full, or if the
// next parameter does not lie directly before the current one.
std::vector<Bucket> make_buckets(const std::vector<Parameter>& parameters, const Arena& arena,
                                 int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  for (size_t i = parameters.size(); i-- > 0;) {
    const Parameter& p = parameters[i];
    const auto width =
        static_cast<int64_t>(size_of(arena.segments()[static_cast<size_t>(p.segment)].dtype));
    if (buckets.empty() || buckets.back().segment != p.segment ||
        buckets.back().begin != end_of(p) ||
        (buckets.back().end - p.offset) * width > bucket_bytes) {
      buckets.push_back({p.segment, end_of(p), end_of(p), {}, 0, {}, {}});
    }
    buckets.back().begin = p.offset;
    buckets.back().members.push_back(i);
  }
  for (Bucket& bucket : buckets) {
    const Arena::Segment& segment = arena.segments()[static_cast<size_t>(bucket.segment)];
    if (arena.sharding() != Sharding::gradients) {
      bucket.gradients =
          make_range(segment.gradients, {bucket.end - bucket.begin}, {1}, bucket.begin);
      continue;
    }
    for (const int64_t bound : segment.bounds) {
      bucket.bounds.push_back(std::clamp(bound, bucket.begin, bucket.end) - bucket.begin);
    }
  }
  return buckets;
}

}  // namespace

struct DistributedDataParallel::State {
  void on_gradient_final(size_t bucket, size_t parameter, const Tensor& gradient);
  void launch_complete();
  void begin_window();
  void wait_for_all();
  void reduce_bucket(size_t bucket);
  void reduce_into_shards(Bucket& bucket);
  void take(Bucket& bucket, const Parameter& p, const Tensor& gradient);
  void note(size_t bucket, double BucketTimes::*what);
  void serve();
  std::string missing() const;
  void compare() { compare_over_ranks(*group, parameters, reductions); }

  std::unique_ptr<Communicator> group;
  std::shared_ptr<Arena> arena;
  DistributedDataParallelOptions options;
  std::vector<Parameter> parameters;  // trainable
  std::vector<Bucket> buckets;
  std::vector<HookHandle> hooks;
  std::vector<bool> final_now;  // per parameter, in this window
  bool reduce = true, in_window = false;
  size_t next = 0;  // the next bucket to launch
  int64_t reductions = 0;

  // The thread that reduces, if there are other ranks. On a device it uses another stream than
  // backward; the host waits for its work there, but backward goes on.
  bool threaded = false;
  std::vector<Event> ready;  // on a device: each bucket's gradients, on the stream of backward
  Clock::time_point start;   // of the window
  std::mutex mutex;
  std::vector<BucketTimes> times;
  std::condition_variable changed;
  std::deque<size_t> queue;
  size_t finished = 0;
  std::exception_ptr error;
  bool stop = false;
  std::thread thread;
};

DistributedDataParallel::DistributedDataParallel(Communicator& group,
                                                 const ParameterList& parameters,
                                                 const DistributedDataParallelOptions& options)
    : state_(std::make_unique<State>()) {
  check(options.bucket_bytes > 0 && options.check_every >= 0, "data parallel: got bucket_bytes ",
        options.bucket_bytes, " and check_every ", options.check_every,
        ", expected more than 0 and 0 or more");
  State& s = *state_;
  s.group = group.split(0, group.rank());
  s.arena = parameters.arena();
  s.options = options;
  for (const Parameter& parameter : parameters) {
    if (parameter.trainable) {
      s.parameters.push_back(parameter);
    }
  }
  check(!s.parameters.empty(), "data parallel: got no trainable parameters");
  s.compare();
  s.buckets = make_buckets(s.parameters, *s.arena, options.bucket_bytes);
  s.final_now.resize(s.parameters.size());
  for (size_t b = 0; b < s.buckets.size(); ++b) {
    for (const size_t i : s.buckets[b].members) {
      s.hooks.push_back(on_gradient(s.parameters[i].value, [&s, b, i](Tensor& gradient) {
        s.on_gradient_final(b, i, gradient);
      }));
    }
  }
  s.threaded = s.group->size() > 1;
  if (s.threaded) {
    for (size_t b = 0; b < s.buckets.size() && !s.arena->device().is_cpu(); ++b) {
      s.ready.emplace_back(s.arena->device());
    }
    s.thread = std::thread([&s] { s.serve(); });
  }
}

DistributedDataParallel::~DistributedDataParallel() {
  State& s = *state_;
  for (HookHandle& hook : s.hooks) {
    hook.remove();
  }
  if (s.threaded) {
    {
      const std::lock_guard lock(s.mutex);
      s.stop = true;
    }
    s.changed.notify_all();
    if (s.in_window) {  // exception in backward: the thread must not wait for other ranks
      s.group->interrupt();
    }
    s.thread.join();
  }
}

void DistributedDataParallel::set_reduce(bool reduce) { state_->reduce = reduce; }
int64_t DistributedDataParallel::buckets() const {
  return static_cast<int64_t>(state_->buckets.size());
}
int64_t DistributedDataParallel::reductions() const { return state_->reductions; }
uint64_t DistributedDataParallel::bytes_sent() const { return state_->group->bytes_sent(); }

std::vector<BucketTimes> DistributedDataParallel::last_reduction() const {
  const std::lock_guard lock(state_->mutex);
  return state_->times;
}

void DistributedDataParallel::finish() const {
  if (state_->in_window) {
    fail(state_->missing());
  }
}

void DistributedDataParallel::compare_parameters() { state_->compare(); }

// The parameters whose gradients an unfinished window still needs.
std::string DistributedDataParallel::State::missing() const {
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!final_now[i] && ++count <= 8) {
      names += (names.empty() ? "" : ", ") + parameters[i].name;
    }
  }
  return text("data parallel: the last backward did not reach ", count, " of ", parameters.size(),
              " parameters: ", names, count > 8 ? ", ..." : "",
              "; their gradients were not reduced. Freeze them, or use them in every loss");
}

void DistributedDataParallel::State::begin_window() {
  in_window = true;
  next = 0;
  std::fill(final_now.begin(), final_now.end(), false);
  for (Bucket& bucket : buckets) {
    bucket.waiting = bucket.members.size();
  }
  start = Clock::now();
  {
    const std::lock_guard lock(mutex);
    finished = 0;
    times.clear();
    for (const Bucket& bucket : buckets) {
      const size_t width = size_of(arena->segments()[static_cast<size_t>(bucket.segment)].dtype);
      times.push_back({.bytes = (bucket.end - bucket.begin) * static_cast<int64_t>(width)});
    }
  }
  if (options.check_every > 0 && reductions > 0 && reductions % options.check_every == 0) {
    compare();
  }
}

void DistributedDataParallel::State::on_gradient_final(size_t bucket, size_t parameter,
                                                       const Tensor& gradient) {
  if (!reduce) {
    return;
  }
  if (!in_window) {
    begin_window();
  }
  if (final_now[parameter]) {  // a new backward, but the previous one is incomplete
    fail(missing());
  }
  const Parameter& p = parameters[parameter];
  if (arena->sharding() == Sharding::gradients) {
    take(buckets[bucket], p, gradient);
  } else {
    const Tensor& range = buckets[bucket].gradients;
    const auto width = static_cast<int64_t>(size_of(range.dtype()));
    check(gradient.view().data == range.view().data + (p.offset - buckets[bucket].begin) * width,
          "data parallel: the gradient of ", p.name,
          " is not in the arena (a backward with create_graph?)");
  }
  final_now[parameter] = true;
  --buckets[bucket].waiting;
  launch_complete();
  if (next == buckets.size()) {
    wait_for_all();
    in_window = false;
    ++reductions;
  }
}

// Buckets start in the same order on every rank, whatever the order of their gradients.
void DistributedDataParallel::State::launch_complete() {
  for (; next < buckets.size() && buckets[next].waiting == 0; ++next) {
    note(next, &BucketTimes::ready);
    if (threaded) {
      if (!ready.empty()) {
        ready[next].record();
      }
      {
        const std::lock_guard lock(mutex);
        queue.push_back(next);
      }
      changed.notify_all();
    }
  }
}

void DistributedDataParallel::State::wait_for_all() {
  if (!threaded) {
    for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      reduce_bucket(bucket);
    }
    return;
  }
  const TimelineSpan span(Activity::collectives, TimelineEvent::wait, "wait for the reduction");
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return finished == buckets.size() || error; });
  if (error) {
    std::rethrow_exception(error);
  }
}

void DistributedDataParallel::State::note(size_t bucket, double BucketTimes::*what) {
  const double now = std::chrono::duration<double>(Clock::now() - start).count();
  const std::lock_guard lock(mutex);
  times[bucket].*what = now;
}

void DistributedDataParallel::State::reduce_bucket(size_t bucket) {
  note(bucket, &BucketTimes::begin);
  if (arena->sharding() == Sharding::gradients) {
    reduce_into_shards(buckets[bucket]);
  } else {
    group->all_reduce(buckets[bucket].gradients, ReduceOp::avg, options.reduce);
  }
  if (!ready.empty()) {  // copies from the host and into the shard
    Stream::current(arena->device()).synchronize();
  }
  if (arena->sharding() == Sharding::gradients) {
    buckets[bucket].gradients = {};
  }
  note(bucket, &BucketTimes::end);
}

// Moves a gradient from its leaf into the bucket, in the layout of the arena.
void DistributedDataParallel::State::take(Bucket& bucket, const Parameter& p,
                                          const Tensor& gradient) {
  check(!gradient.requires_grad(), "data parallel: the gradient of ", p.name,
        " was recorded by a backward with create_graph, expected a plain one");
  const NoGradGuard guard;
  if (!bucket.gradients.defined()) {
    bucket.gradients = zeros({bucket.end - bucket.begin}, gradient.dtype(), gradient.device());
  }
  make_view(bucket.gradients, p.value.sizes(), p.value.strides(), p.offset - bucket.begin)
      .copy_(gradient);
  p.leaf().buffer = {};
}

void DistributedDataParallel::State::reduce_into_shards(Bucket& bucket) {
  group->reduce_scatter_ranges(bucket.gradients, bucket.bounds, ReduceOp::avg, options.reduce);
  const Arena::Segment& segment = arena->segments()[static_cast<size_t>(bucket.segment)];
  const auto rank = static_cast<size_t>(group->rank());
  const int64_t begin = bucket.bounds[rank], count = bucket.bounds[rank + 1] - begin;
  if (count > 0) {
    const NoGradGuard guard;
    make_view(segment.gradients, {count}, {1}, bucket.begin + begin - segment.gradients_begin)
        .copy_(make_view(bucket.gradients, {count}, {1}, begin));
  }
}

void DistributedDataParallel::State::serve() {
  std::optional<StreamGuard> stream;  // another stream than that of backward
  if (!ready.empty()) {
    stream.emplace(Stream(arena->device(), Stream::high));
  }
  for (;;) {
    size_t bucket;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) {
        return;
      }
      bucket = queue.front();
      queue.pop_front();
    }
    std::exception_ptr failure;
    try {
      if (!ready.empty()) {
        Stream::current(arena->device()).wait(ready[bucket]);
      }
      reduce_bucket(bucket);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      ++finished;
      error = error ? error : failure;
    }
    changed.notify_all();
  }
}

}  // namespace binade::dist
