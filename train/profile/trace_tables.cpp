#include <binade/train/profile/trace_rows_internal.h>
#include <binade/train/profile/trace_tables.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;
using Key = std::pair<std::string, std::string>;  // name and detail

constexpr double kMicroseconds = 1e-3;  // in milliseconds

class Rows {
 public:
  explicit Rows(const Trace& trace) : trace_(trace), self_(self_times(trace)) {}

  // Sums by the key that `key_of` gives; an event with an empty name is left out.
  template <class F>
  std::vector<TraceRow> by(F&& key_of) const {
    std::map<Key, TraceRow> rows;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const TraceEvent& event = trace_.events[i];
      if (const Key key = key_of(event); !key.first.empty()) {
        add(rows[key], event, self_[i]);
      }
    }
    std::vector<TraceRow> out;
    for (auto& [key, row] : rows) {
      row.name = key.first;
      row.detail = key.second;
      out.push_back(scaled(row));
    }
    std::stable_sort(out.begin(), out.end(), [](const TraceRow& a, const TraceRow& b) {
      return a.milliseconds > b.milliseconds;
    });
    return out;
  }

 private:
  static void add(TraceRow& row, const TraceEvent& event, double self) {
    row.calls += 1;
    row.milliseconds += self * kMicroseconds;
    if (event.kind != Kind::step) {
      row.flops += event.flops;
      row.bytes += event.bytes;
    }
  }
  TraceRow scaled(TraceRow row) const {
    const double steps = std::max<double>(1, static_cast<double>(trace_.steps().size()));
    const double whole = trace_.duration() * kMicroseconds;
    row.share = whole > 0 ? row.milliseconds / whole : 0;
    const double seconds = row.milliseconds * 1e-3;
    const Roofline& best = trace_.roofline;
    if (best.flops > 0 && best.bytes > 0 && seconds > 0) {
      row.roofline = std::max(row.flops / best.flops, row.bytes / best.bytes) / seconds;
    }
    for (double* value : {&row.calls, &row.milliseconds, &row.flops, &row.bytes}) {
      *value /= steps;
    }
    return row;
  }

  const Trace& trace_;
  std::vector<double> self_;
};

std::string pass_of(const TraceEvent& event) {
  return event.backward                                     ? "backward"
         : event.phase.empty() || event.phase == "backward" ? "forward"
                                                            : event.phase;
}

}  // namespace

std::vector<TraceRow> rows_by_op(const Trace& trace) {
  return Rows(trace).by([](const TraceEvent& event) -> Key {
    if (event.lane != 0) {
      return {};
    }
    switch (event.kind) {
      case Kind::op: return {event.name, pass_of(event)};
      case Kind::step: return {"(outside of phases)", ""};
      case Kind::phase:
        return is_work(event.name) ? Key{"(" + event.name + ")", ""}
                                   : Key{"(between ops)", event.name};
      default: return {event.name, event.kind == Kind::user ? "label" : ""};
    }
  });
}

std::vector<TraceRow> rows_by_module(const Trace& trace) {
  return Rows(trace).by([](const TraceEvent& event) -> Key {
    if (event.kind != Kind::op || event.lane != 0) {
      return {};
    }
    return {event.module.empty() ? "(no module)" : event.module, pass_of(event)};
  });
}

std::vector<TraceRow> rows_by_kernel(const Trace& trace) {
  const bool on_device = std::any_of(trace.events.begin(), trace.events.end(),
                                     [](const TraceEvent& e) { return e.kind == Kind::kernel; });
  return Rows(trace).by([&](const TraceEvent& event) -> Key {
    if (on_device) {
      return event.kind == Kind::kernel
                 ? Key{event.name, trace.lanes[static_cast<size_t>(event.lane)].name}
                 : Key();
    }
    return event.kind == Kind::op && event.lane == 0
               ? Key{event.name + (event.backward ? " backward" : ""), event.note}
               : Key();
  });
}

std::vector<TraceRow> rows_by_line(const Trace& trace) {
  std::vector<const TraceEvent*> labels;  // around the current event
  return Rows(trace).by([&labels](const TraceEvent& event) -> Key {
    if (event.lane != 0) {
      return {};
    }
    while (!labels.empty() && labels.back()->end <= event.begin) {
      labels.pop_back();
    }
    if (event.kind == Kind::user && !event.note.empty()) {
      labels.push_back(&event);
    }
    if ((event.kind == Kind::wait || event.kind == Kind::copy) && !event.note.empty()) {
      // "train.cpp:40", or of a copy "pageable, train.cpp:40" or "pageable".
      const size_t comma = event.note.find(", ");
      const std::string line =
          comma == std::string::npos ? event.note : event.note.substr(comma + 2);
      if (line.find(':') != std::string::npos) {
        return {line, event.name};
      }
    }
    if (!event.line.empty()) {
      return {event.line, event.name + (event.backward ? " backward" : "")};
    }
    return labels.empty() ? Key() : Key{labels.back()->note, labels.back()->name};
  });
}

std::vector<TraceRow> rows_by_phase(const Trace& trace) {
  std::map<std::string, double> time;
  double rest = trace.duration();
  double until = -1;  // the end of the outermost phase
  for (const TraceEvent& event : trace.events) {
    if (event.lane == 0 && event.kind == Kind::phase && event.begin >= until) {
      until = event.end;
      time[event.name] += event.end - event.begin;
      rest -= event.end - event.begin;
    }
  }
  time["other"] += std::max(rest, 0.0);
  const double steps = std::max<double>(1, static_cast<double>(trace.steps().size()));
  std::vector<TraceRow> rows;
  for (const auto& [name, sum] : time) {
    TraceRow row{.name = name, .detail = "", .calls = 1};
    row.milliseconds = sum * kMicroseconds / steps;
    row.share = trace.duration() > 0 ? sum / trace.duration() : 0;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const TraceRow& a, const TraceRow& b) {
    return a.milliseconds > b.milliseconds;
  });
  return rows;
}

bool is_work(const std::string& phase) {
  return phase == "optimizer" || phase == "data" || phase == "reduction" || phase == "checkpoint";
}

}  // namespace binade::train
