// Timeline: the activities of a program's threads, as events with a begin and an end. While a
// Timeline exists that asks for them, the engine records ops, phases, loader stages, copies, waits,
// collectives and the allocator's bytes; train/profiler.h makes traces and tables of them.
//
//   Timeline timeline({.activities = kEveryActivity});
//   timeline.record(true);
//   { const TimelineSpan span(Activity::cpu, TimelineEvent::user, "my part"); work(); }
//   timeline.record(false);
//   for (const TimelineLane& lane : timeline.lanes()) ...
//
// Without one, each place where an event could be recorded costs one test of a flag. Times are
// nanoseconds of the steady clock. Names and notes are literals or come from timeline_text().
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

enum class Activity : uint32_t {
  cpu = 1,           // ops, phases, user's labels, busy threads
  device = 2,        // kernels on devices, copies, waits of the host
  memory = 4,        // bytes of the allocators
  data = 8,          // stages of the loader's workers, its queue
  collectives = 16,  // communication between ranks
  source_lines = 32  // the line of the program that called an op (with cpu)
};
using Activities = uint32_t;  // a sum of them
inline constexpr Activities kEveryActivity = 63;
constexpr Activities operator|(Activity a, Activity b) {
  return static_cast<Activities>(a) | static_cast<Activities>(b);
}
constexpr Activities operator|(Activities a, Activity b) { return a | static_cast<Activities>(b); }
constexpr bool contains(Activities all, Activity one) {
  return (all & static_cast<Activities>(one)) != 0;
}

struct TimelineEvent {
  enum Kind : uint8_t { step, phase, op, kernel, data, copy, wait, collective, user, counter };
  Kind kind = user;
  bool backward = false;           // an op that is a backward, or part of one
  const char* name = "";           // of the op, phase, kernel, stage or counter
  const char* in_phase = nullptr;  // the phase of the thread: "forward", ...; null outside
  const char* note = nullptr;      // shapes and dtypes of an op; file:line of a wait; null: none
  uint32_t label = 0;              // module path (core/observe/label.h)
  uint32_t stack =
      0;  // the calls that led to an op (core/observe/call_stack_internal.h); 0: unknown
  int64_t begin = 0, end = 0;  // equal for a counter
  double amount = 0;           // of an op: FLOPs; of a counter: its value; of a step: its number
  double bytes = 0;            // read and written by an op, copied, or sent
};

// The events of one thread, or of one stream of a device, in the order of their ends.
struct TimelineLane {
  std::string name;
  bool device = false;
  std::vector<TimelineEvent> events = {};
};

struct TimelineOptions {
  Activities activities = kEveryActivity;
  int64_t max_events = 2'000'000;  // later ones are dropped and counted
};

// A process may have only one at a time: a second one is an error. Threads may record while another
// thread calls the functions of the Timeline.
class Timeline {
 public:
  explicit Timeline(const TimelineOptions& options = {});
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void record(bool on);  // initially off
  void clear();          // forgets all events
  std::vector<TimelineLane> lanes() const;
  int64_t dropped() const;  // events over `max_events`, since clear()
  Activities activities() const { return options_.activities; }

 private:
  TimelineOptions options_;
};

// A copy of `text` that lives as long as the program; equal texts have the same address.
const char* timeline_text(std::string_view text);
// The name of this thread's lane in traces: a literal.
void name_timeline_lane(const char* name);

namespace detail {

extern std::atomic<Activities> timeline_activities;  // 0: nothing is recorded
inline bool timeline_has(Activity activity) {
  return contains(timeline_activities.load(std::memory_order_relaxed), activity);
}
int64_t timeline_now();
// Adds an event to this thread's lane; an event that does not fit is dropped and counted.
void timeline_add(const TimelineEvent& event) noexcept;
// Adds an event to the lane of a device's stream.
void timeline_add_to(const std::string& lane, const TimelineEvent& event);
void timeline_counter(const char* name, double value) noexcept;
const char*& timeline_phase();  // of this thread
// The time at which the newest span of this thread began or ended: later events began after it.
int64_t& timeline_boundary();

}  // namespace detail

// One event over the lifetime of this object.
class TimelineSpan {
 public:
  TimelineSpan(Activity activity, TimelineEvent::Kind kind, const char* name)
      : kind_(kind), name_(name) {
    if (detail::timeline_has(activity)) [[unlikely]] {
      begin_ = detail::timeline_boundary() = detail::timeline_now();
    }
  }
  ~TimelineSpan() {
    if (begin_ != 0) [[unlikely]] {
      finish();
    }
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

  bool is_recorded() const { return begin_ != 0; }
  void set_bytes(double bytes) { bytes_ = bytes; }
  void set_note(const char* note) { note_ = note; }

 private:
  void finish() noexcept;

  TimelineEvent::Kind kind_;
  const char* name_;
  const char* note_ = nullptr;
  int64_t begin_ = 0;
  double bytes_ = 0;
};

// A phase of a training step: "data", "forward", "backward", "reduction", "optimizer", or one of
// your own. Ops that run meanwhile belong to it. The innermost one counts.
class PhaseSpan {
 public:
  explicit PhaseSpan(const char* name);
  ~PhaseSpan();
  PhaseSpan(const PhaseSpan&) = delete;
  PhaseSpan& operator=(const PhaseSpan&) = delete;

 private:
  TimelineSpan span_;
  const char* outer_;
};

}  // namespace binade
