// Each thread writes to a lane of its own without a lock: events fill chunks, and a chunk says how
// many it has. A locked instruction per event would wait for all stores that an op left behind.
#include <binade/core/device/thread_state.h>
#include <binade/core/observe/timeline.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel_probe.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace binade {
namespace detail {

std::atomic<Activities> timeline_activities{0};

namespace {

// Some events of one lane. `used` grows when an event is complete.
template <class T>
struct Chunk {
  explicit Chunk(int64_t size) : events(static_cast<size_t>(size)) {}
  std::vector<T> events;
  std::atomic<size_t> used{0};
};

template <class T>
struct Chunks {
  std::vector<std::unique_ptr<Chunk<T>>> all;
  Chunk<T>* last = nullptr;  // used by the thread that writes
};

// A counter event. Most events are counters, so they take as little memory as they can.
struct Count {
  const char* name = "";
  int64_t at = 0;
  double value = 0;
  uint32_t label = 0;
};

struct Lane {
  std::mutex mutex;  // of the lists of chunks; of all of the lane if several threads write
  std::string name;
  bool device = false;
  Chunks<TimelineEvent> events;
  Chunks<Count> counts;
};

struct Recorder {
  std::mutex mutex;
  bool exists = false;  // a Timeline does
  std::vector<std::shared_ptr<Lane>> lanes;
  std::map<std::string, std::shared_ptr<Lane>> streams;
  std::atomic<uint64_t> generation{1};  // lanes of earlier ones get no events any more
  std::atomic<int64_t> most{0}, granted{0}, dropped{0};
};
Recorder& recorder() {  // never destroyed: threads may end after main
  static auto* instance = new Recorder;
  return *instance;
}

struct ThreadLane {
  std::shared_ptr<Lane> lane;
  uint64_t generation = 0;
};
thread_local ThreadLane thread_lane;
constinit thread_local const char* lane_name = nullptr;
constinit thread_local const char* phase = nullptr;
constinit thread_local int64_t boundary = 0;

Lane& lane_of_thread() {
  Recorder& r = recorder();
  const uint64_t generation = r.generation.load(std::memory_order_acquire);
  if (thread_lane.generation != generation) {
    auto lane = std::make_shared<Lane>();
    lane->name = lane_name ? lane_name : "thread";
    const std::lock_guard lock(r.mutex);
    r.lanes.push_back(lane);
    thread_lane = {std::move(lane), generation};
  }
  return *thread_lane.lane;
}

constexpr int64_t kChunk = 256;  // events

// How many events of `kChunk` may still be recorded.
int64_t grant() {
  Recorder& r = recorder();
  const int64_t most = r.most.load(std::memory_order_relaxed);
  int64_t before = r.granted.load(std::memory_order_relaxed), next = before;
  do {
    next = std::min(before + kChunk, most);
  } while (next > before &&
           !r.granted.compare_exchange_weak(before, next, std::memory_order_relaxed));
  return std::max<int64_t>(next - before, 0);
}

// Adds an event. REQUIRES: one thread at a time writes to `lane`; `is_locked` tells whether it
// holds lane.mutex.
template <class T>
void add(Lane& lane, Chunks<T>& chunks, const T& event, bool is_locked = false) {
  Chunk<T>* chunk = chunks.last;
  size_t used = chunk ? chunk->used.load(std::memory_order_relaxed) : 0;
  if (!chunk || used == chunk->events.size()) [[unlikely]] {
    const int64_t size = grant();
    if (size == 0) {
      recorder().dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    auto next = std::make_unique<Chunk<T>>(size);
    chunk = next.get();
    used = 0;
    std::unique_lock lock(lane.mutex, std::defer_lock);
    if (!is_locked) {
      lock.lock();
    }
    chunks.all.push_back(std::move(next));
    chunks.last = chunk;
  }
  chunk->events[used] = event;
  chunk->used.store(used + 1, std::memory_order_release);
}

TimelineEvent event_of(const Count& count) {
  return {.kind = TimelineEvent::counter,
          .name = count.name,
          .label = count.label,
          .begin = count.at,
          .end = count.at,
          .amount = count.value};
}
const TimelineEvent& event_of(const TimelineEvent& event) { return event; }

template <class T>
void append_events(std::vector<TimelineEvent>& events, const Chunks<T>& chunks) {
  for (const auto& chunk : chunks.all) {
    const size_t used = chunk->used.load(std::memory_order_acquire);
    for (size_t i = 0; i < used; ++i) {
      events.push_back(event_of(chunk->events[i]));
    }
  }
}

void note_busy_threads(int threads) noexcept {
  timeline_counter("threads busy", static_cast<double>(threads));
}

}  // namespace

int64_t timeline_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void timeline_add(const TimelineEvent& event) noexcept {
  try {
    Lane& lane = lane_of_thread();
    add(lane, lane.events, event);
  } catch (const std::exception&) {  // no memory
    recorder().dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

void timeline_add_to(const std::string& lane, const TimelineEvent& event) {
  Recorder& r = recorder();
  std::shared_ptr<Lane> found;
  {
    const std::lock_guard lock(r.mutex);
    std::shared_ptr<Lane>& entry = r.streams[lane];
    if (!entry) {
      entry = std::make_shared<Lane>();
      entry->name = lane;
      entry->device = true;
      r.lanes.push_back(entry);
    }
    found = entry;
  }
  const std::lock_guard lock(found->mutex);
  add(*found, found->events, event, true);
}

void timeline_counter(const char* name, double value) noexcept {
  try {
    Lane& lane = lane_of_thread();
    add(lane, lane.counts,
        Count{.name = name, .at = timeline_now(), .value = value, .label = thread_state.label});
  } catch (const std::exception&) {  // no memory
    recorder().dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

const char*& timeline_phase() { return phase; }
int64_t& timeline_boundary() { return boundary; }

}  // namespace detail

Timeline::Timeline(const TimelineOptions& options) : options_(options) {
  check(options.max_events > 0, "timeline: got max_events ", options.max_events,
        ", expected at least 1");
  check((options.activities & ~kEveryActivity) == 0, "timeline: got activities ",
        options.activities, ", expected a sum of values of Activity");
  detail::Recorder& r = detail::recorder();
  {
    const std::lock_guard lock(r.mutex);
    check(!r.exists,
          "timeline: another profiler is at work in this process, expected one at a time; end it "
          "first");
    r.exists = true;
  }
  r.most = options.max_events;
  clear();
}

Timeline::~Timeline() {
  record(false);
  clear();
  detail::Recorder& r = detail::recorder();
  const std::lock_guard lock(r.mutex);
  r.exists = false;
}

void Timeline::record(bool on) {
  detail::timeline_activities.store(on ? options_.activities : 0, std::memory_order_relaxed);
  const bool counts = on && contains(options_.activities, Activity::cpu);
  kernels::set_parallel_probe(counts ? detail::note_busy_threads : nullptr);
}

void Timeline::clear() {
  detail::Recorder& r = detail::recorder();
  const std::lock_guard lock(r.mutex);
  r.lanes.clear();
  r.streams.clear();
  r.granted = 0;
  r.dropped = 0;
  r.generation.fetch_add(1, std::memory_order_release);
}

std::vector<TimelineLane> Timeline::lanes() const {
  detail::Recorder& r = detail::recorder();
  const std::lock_guard lock(r.mutex);
  std::vector<TimelineLane> all;
  for (const auto& lane : r.lanes) {
    const std::lock_guard one(lane->mutex);
    TimelineLane& copy = all.emplace_back(TimelineLane{lane->name, lane->device});
    detail::append_events(copy.events, lane->events);
    const auto middle = static_cast<int64_t>(copy.events.size());
    detail::append_events(copy.events, lane->counts);
    std::inplace_merge(
        copy.events.begin(), copy.events.begin() + middle, copy.events.end(),
        [](const TimelineEvent& a, const TimelineEvent& b) { return a.end < b.end; });
  }
  return all;
}

int64_t Timeline::dropped() const { return detail::recorder().dropped; }

const char* timeline_text(std::string_view text) {
  static std::mutex mutex;
  static auto* texts = new std::set<std::string, std::less<>>;  // nodes keep their addresses
  const std::lock_guard lock(mutex);
  auto found = texts->find(text);
  if (found == texts->end()) {
    found = texts->emplace(text).first;
  }
  return found->c_str();
}

void name_timeline_lane(const char* name) { detail::lane_name = name; }

void TimelineSpan::finish() noexcept {
  const int64_t end = detail::timeline_boundary() = detail::timeline_now();
  detail::timeline_add({.kind = kind_,
                        .name = name_,
                        .in_phase = detail::phase,
                        .note = note_,
                        .label = detail::thread_state.label,
                        .begin = begin_,
                        .end = end,
                        .bytes = bytes_});
}

PhaseSpan::PhaseSpan(const char* name)
    : span_(Activity::cpu, TimelineEvent::phase, name),
      outer_(std::exchange(detail::timeline_phase(), name)) {}

PhaseSpan::~PhaseSpan() { detail::timeline_phase() = outer_; }

}  // namespace binade
