// Each thread writes to a lane of its own, behind a lock that only a reader of the timeline
// contends for.
#include <binade/core/device/thread_state.h>
#include <binade/core/observe/timeline.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel_probe.h>

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

struct Lane {
  std::mutex mutex;
  TimelineLane content;
};

struct Recorder {
  std::mutex mutex;
  bool exists = false;  // a Timeline does
  std::vector<std::shared_ptr<Lane>> lanes;
  std::map<std::string, std::shared_ptr<Lane>> streams;
  std::atomic<uint64_t> generation{1};  // lanes of earlier ones get no events any more
  std::atomic<int64_t> most{0}, count{0};
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
    lane->content.name = lane_name ? lane_name : "thread";
    const std::lock_guard lock(r.mutex);
    r.lanes.push_back(lane);
    thread_lane = {std::move(lane), generation};
  }
  return *thread_lane.lane;
}

void add(Lane& lane, const TimelineEvent& event) {
  Recorder& r = recorder();
  if (r.count.fetch_add(1, std::memory_order_relaxed) < r.most.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(lane.mutex);
    lane.content.events.push_back(event);
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
    add(lane_of_thread(), event);
  } catch (const std::exception&) {  // no memory: the event is lost, and counted
    recorder().count.fetch_add(recorder().most, std::memory_order_relaxed);
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
      entry->content.name = lane;
      entry->content.device = true;
      r.lanes.push_back(entry);
    }
    found = entry;
  }
  add(*found, event);
}

void timeline_counter(const char* name, double value) noexcept {
  const int64_t now = timeline_now();
  timeline_add({.kind = TimelineEvent::counter,
                .name = name,
                .label = thread_state.label,
                .begin = now,
                .end = now,
                .amount = value});
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
  r.count = 0;
  r.generation.fetch_add(1, std::memory_order_release);
}

std::vector<TimelineLane> Timeline::lanes() const {
  detail::Recorder& r = detail::recorder();
  const std::lock_guard lock(r.mutex);
  std::vector<TimelineLane> all;
  for (const auto& lane : r.lanes) {
    const std::lock_guard one(lane->mutex);
    all.push_back(lane->content);
  }
  return all;
}

int64_t Timeline::dropped() const {
  const int64_t over = detail::recorder().count - options_.max_events;
  return over > 0 ? over : 0;
}

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
