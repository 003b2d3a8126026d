#include <binade/core/observe/call_stack_internal.h>
#include <binade/core/observe/label.h>
#include <binade/train/profile/trace.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;

constexpr double kNanoseconds = 1000;  // of a microsecond

std::string text_or_empty(const char* text) { return text ? text : ""; }

// Lane 0 is the one with the steps, then other threads, then devices.
std::vector<size_t> order_of(const std::vector<TimelineLane>& lanes) {
  std::vector<size_t> order(lanes.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const auto rank = [&](size_t i) {
    const auto& events = lanes[i].events;
    const bool steps = std::any_of(events.begin(), events.end(),
                                   [](const TimelineEvent& e) { return e.kind == Kind::step; });
    return steps ? 0 : lanes[i].device ? 2 : 1;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

// "loader worker 1", "loader worker 2": names of several lanes get numbers.
void number_lanes(std::vector<TraceLane>& lanes) {
  std::map<std::string, int> count, next;
  for (const TraceLane& lane : lanes) {
    ++count[lane.name];
  }
  for (TraceLane& lane : lanes) {
    if (count[lane.name] > 1) {
      const std::string name = lane.name;
      lane.name += " " + std::to_string(++next[name]);
    }
  }
}

void add_event(Trace& trace, const TimelineEvent& event, int lane, int64_t begin) {
  const auto time = [begin](int64_t t) { return static_cast<double>(t - begin) / kNanoseconds; };
  if (event.kind == Kind::counter) {
    trace.counters.push_back(
        {event.name, label_text(event.label), time(event.begin), event.amount});
    return;
  }
  trace.events.push_back({.kind = event.kind,
                          .backward = event.backward,
                          .lane = lane,
                          .name = event.name,
                          .phase = text_or_empty(event.in_phase),
                          .module = label_text(event.label),
                          .note = text_or_empty(event.note),
                          .line = binade::detail::call_line(event.stack),
                          .begin = time(event.begin),
                          .end = time(event.end),
                          .flops = event.amount,
                          .bytes = event.bytes});
}

}  // namespace

bool is_before(const TraceEvent& a, const TraceEvent& b) {
  return std::tuple(a.lane, a.begin, -a.end, a.kind) < std::tuple(b.lane, b.begin, -b.end, b.kind);
}

double Trace::duration() const {
  double total = 0, first = 0, last = 0;
  for (const TraceEvent& event : events) {
    total += event.kind == Kind::step ? event.end - event.begin : 0;
    last = std::max(last, event.end);
  }
  return total > 0 ? total : last - first;
}

std::vector<const TraceEvent*> Trace::steps() const {
  std::vector<const TraceEvent*> all;
  for (const TraceEvent& event : events) {
    if (event.kind == Kind::step) {
      all.push_back(&event);
    }
  }
  return all;
}

Trace make_trace(const std::vector<TimelineLane>& lanes, int64_t begin) {
  Trace trace;
  for (const size_t i : order_of(lanes)) {
    const auto lane = static_cast<int>(trace.lanes.size());
    const bool is_main = lane == 0 && !lanes[i].device;
    trace.lanes.push_back({is_main ? "main" : lanes[i].name, lanes[i].device});
    for (const TimelineEvent& event : lanes[i].events) {
      if (event.begin >= begin) {
        add_event(trace, event, lane, begin);
      }
    }
  }
  number_lanes(trace.lanes);
  std::stable_sort(trace.events.begin(), trace.events.end(), is_before);
  std::stable_sort(trace.counters.begin(), trace.counters.end(),
                   [](const TraceCounter& a, const TraceCounter& b) { return a.time < b.time; });
  trace.begin_ns = begin;
  return trace;
}

std::vector<double> self_times(const Trace& trace) {
  std::vector<double> self(trace.events.size());
  std::vector<size_t> open;  // indices of events around the current one
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    while (!open.empty() && (trace.events[open.back()].lane != event.lane ||
                             trace.events[open.back()].end <= event.begin)) {
      open.pop_back();
    }
    self[i] = event.end - event.begin;
    if (!open.empty()) {
      self[open.back()] -= std::min(event.end, trace.events[open.back()].end) - event.begin;
    }
    open.push_back(i);
  }
  for (double& time : self) {
    time = std::max(time, 0.0);
  }
  return self;
}

}  // namespace binade::train
