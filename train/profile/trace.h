// Trace: what a profiler recorded, as one list of spans and one of counters, and its file: JSON of
// the Trace Event Format in the spelling of PyTorch's profiler, for Perfetto, chrome://tracing and
// TensorBoard's profile page. read_trace() reads only what write_trace() writes.
#pragma once
#include <binade/core/observe/timeline.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace binade::train {

struct TraceLane {
  std::string name;     // "main", "loader worker 1", "cuda:0 stream 7"
  bool device = false;  // a stream of a device
  bool operator==(const TraceLane&) const = default;
};

// Times are microseconds since the begin of the trace.
struct TraceEvent {
  TimelineEvent::Kind kind = TimelineEvent::user;
  bool backward = false;
  int lane = 0;
  std::string name, phase = {}, module = {}, note = {};
  std::string line =
      {};  // of the program that called an op, "train.cpp:40"; or its function; or empty
  double begin = 0, end = 0;
  double flops = 0, bytes = 0;
  bool operator==(const TraceEvent&) const = default;
};

struct TraceCounter {
  std::string name, module;
  double time = 0, value = 0;
  bool operator==(const TraceCounter&) const = default;
};

// The best that this machine was measured to do; 0: not measured.
struct Roofline {
  double flops = 0;  // per second: a product of two f32 matrices
  double bytes = 0;  // per second, read and written: a copy
  bool operator==(const Roofline&) const = default;
};

struct Trace {
  int rank = 0;
  std::vector<TraceLane> lanes;        // lane 0 ran the steps
  std::vector<TraceEvent> events;      // by lane, then by begin; the outer one first
  std::vector<TraceCounter> counters;  // by time
  Roofline roofline;
  int64_t dropped = 0;     // events that had no room
  int64_t first_step = 0;  // the number of the first recorded step
  // "cores", "threads", "device", "activities", "version"
  std::map<std::string, std::string> facts;
  int64_t begin_ns = 0;  // of the steady clock

  double duration() const;  // of the steps; of everything if there were none
  std::vector<const TraceEvent*> steps() const;
  bool operator==(const Trace&) const = default;
};

// A trace of the timeline's events from `begin` on, in nanoseconds of the steady clock. The lane of
// the calling thread comes first.
Trace make_trace(const std::vector<TimelineLane>& lanes, int64_t begin);

struct TraceFileOptions {
  int64_t max_bytes = int64_t{200} << 20;  // later events are left out, and counted as dropped
};
// The text of the file.
std::string trace_json(const Trace& trace, const TraceFileOptions& options = {});
// Throws Error if the file is not one, naming the event.
Trace parse_trace(const std::string& json, const std::string& name);
Trace read_trace(const std::string& file);
// The traces of a run directory, by rank: trace.json and trace-rankN.json. `path` may also be a
// file. Throws Error if there is none.
std::vector<Trace> read_traces(const std::string& path);

// The order of Trace::events.
bool is_before(const TraceEvent& a, const TraceEvent& b);
// Time of each event less the events inside it on its lane; in the order of `events`.
std::vector<double> self_times(const Trace& trace);

}  // namespace binade::train
