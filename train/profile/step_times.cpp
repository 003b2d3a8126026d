#include <binade/train/profile/step_times_internal.h>
#include <binade/train/profile/trace_rows_internal.h>

#include <algorithm>
#include <string_view>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;

constexpr double kMilliseconds = 1e-3;  // of a microsecond
constexpr double kSmallCopy = 65536;    // bytes; less is a wait, not a transfer

// The events around the current one, on the lane of the steps.
class Around {
 public:
  void enter(const TraceEvent& event) {
    while (!open_.empty() && open_.back()->end <= event.begin) {
      open_.pop_back();
    }
  }
  void push(const TraceEvent& event) { open_.push_back(&event); }
  bool has_phase(std::string_view name) const {
    return std::any_of(open_.begin(), open_.end(), [&](const TraceEvent* e) {
      return e->kind == Kind::phase && e->name == name;
    });
  }
  // The innermost wait or copy around the event; null: none.
  const TraceEvent* wait() const {
    for (size_t i = open_.size(); i-- > 0;) {
      if (open_[i]->kind == Kind::wait || open_[i]->kind == Kind::copy ||
          open_[i]->kind == Kind::collective) {
        return open_[i];
      }
    }
    return nullptr;
  }
  bool is_in_step() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const TraceEvent* e) { return e->kind == Kind::step; });
  }

 private:
  std::vector<const TraceEvent*> open_;
};

bool is_pageable(const TraceEvent& event) {
  return event.note.starts_with("pageable") && event.bytes >= kSmallCopy;
}

double* stage_of(StepShares& times, const std::string& name) {
  return name == "read"        ? &times.read
         : name == "decode"    ? &times.decode
         : name == "transform" ? &times.transform
         : name == "collate"   ? &times.collate
                               : &times.wait;
}

double* phase_of(StepShares& times, const std::string& phase) {
  return phase == "forward"     ? &times.forward
         : phase == "backward"  ? &times.backward
         : phase == "reduction" ? &times.reduction
         : phase == "optimizer" ? &times.optimizer
         : phase == "data"      ? &times.wait
                                : &times.other;
}

bool is_of_ranks(const TraceEvent& event) {
  return event.kind == Kind::collective || event.name == "wait for other ranks" ||
         event.name == "wait for the reduction";
}

// Where the own time of an event on the lane of the steps belongs.
double* place_of(StepShares& times, const TraceEvent& event, const Around& around) {
  const TraceEvent* wait =
      event.kind == Kind::wait || event.kind == Kind::copy || event.kind == Kind::collective
          ? &event
          : around.wait();
  if (wait) {
    if (is_of_ranks(*wait)) {
      return &times.reduction;
    }
    const bool moves = wait->kind == Kind::copy && (wait->bytes >= kSmallCopy || wait->bytes == 0);
    return moves ? &times.copy : &times.host_waits;
  }
  switch (event.kind) {
    case Kind::data: return stage_of(times, event.name);
    case Kind::phase: return phase_of(times, event.name);
    case Kind::op: return phase_of(times, event.phase);
    case Kind::user: return event.phase.empty() ? &times.other : phase_of(times, event.phase);
    default: return &times.other;
  }
}

void note_waits(StepTimes& out, const TraceEvent& event, const Around& around) {
  if (event.kind == Kind::copy && is_pageable(event)) {
    WaitTime& one =
        out.pageable[{event.name, event.note.substr(event.note.find(", ") == std::string::npos
                                                        ? event.note.size()
                                                        : event.note.find(", ") + 2)}];
    one.calls += 1;
    one.milliseconds += (event.end - event.begin) * kMilliseconds;
    one.bytes += event.bytes;
  }
  const TraceEvent* outer = around.wait();
  const bool is_own = !outer || (outer->kind == Kind::copy && outer->bytes < kSmallCopy);
  if (event.kind == Kind::wait && !is_of_ranks(event) && is_own && event.name != "to") {
    WaitTime& one = out.waits[{event.name, event.note}];
    one.calls += 1;
    one.milliseconds += (event.end - event.begin) * kMilliseconds;
  }
}

void add_main_lane(StepTimes& out, const Trace& trace, const std::vector<double>& self) {
  Around around;
  std::vector<double> ops, computing;  // a view costs less than any op that computes
  for (size_t i = 0; i < trace.events.size() && trace.events[i].lane == 0; ++i) {
    const TraceEvent& event = trace.events[i];
    around.enter(event);
    const bool apart =
        around.has_phase("validation") || around.has_phase("checkpoint") ||
        (event.kind == Kind::phase && (event.name == "validation" || event.name == "checkpoint"));
    if (!apart && (event.kind == Kind::step || around.is_in_step())) {
      const double time = self[i] * kMilliseconds;
      out.whole += time;
      *place_of(out.times, event, around) += time;
      note_waits(out, event, around);
      if (event.kind == Kind::op) {
        (event.bytes > 0 ? computing : ops).push_back(time);
      } else if (event.kind == Kind::phase &&
                 (event.name == "forward" || event.name == "backward")) {
        out.between_ops += time;
      }
    }
    around.push(event);
  }
  out.ops = static_cast<double>(ops.size() + computing.size());
  if (!computing.empty()) {
    ops.swap(computing);
  }
  if (!ops.empty()) {
    const auto tenth = ops.begin() + static_cast<std::ptrdiff_t>(ops.size() / 10);
    std::nth_element(ops.begin(), tenth, ops.end());
    out.typical_cheap = *tenth;
  }
}

void add_workers(StepTimes& out, const Trace& trace, const std::vector<double>& self) {
  std::vector<bool> seen(trace.lanes.size(), false);
  StepShares sums;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.lane != 0 && event.kind == Kind::data) {
      *stage_of(sums, event.name) += self[i] * kMilliseconds;
      const auto lane = static_cast<size_t>(event.lane);
      if (!seen[lane]) {
        seen[lane] = true;
        ++out.loader.workers;
      }
    }
  }
  if (out.loader.workers == 0) {
    sums = out.times;
  }
  out.loader.read = sums.read;
  out.loader.decode = sums.decode;
  out.loader.transform = sums.transform;
  out.loader.collate = sums.collate;
}

// The last value of each counter before the end of each step.
void add_counters(StepTimes& out, const Trace& trace) {
  const std::vector<const TraceEvent*> steps = trace.steps();
  std::vector<double>* series[] = {&out.allocated, &out.graph_nodes};
  const char* names[] = {"allocated", "live graph nodes"};
  for (size_t k = 0; k < 2; ++k) {
    size_t at = 0;
    double value = 0;
    bool any = false;
    for (const TraceEvent* step : steps) {
      for (; at < trace.counters.size() && trace.counters[at].time <= step->end; ++at) {
        if (trace.counters[at].name == names[k]) {
          value = trace.counters[at].value;
          any = true;
        }
      }
      if (any) {
        series[k]->push_back(value);
      }
    }
  }
  double first_cpu = 0, last_cpu = 0;
  int64_t cpu_counts = 0;
  for (const TraceCounter& counter : trace.counters) {
    if (counter.name == kCpuTime) {
      first_cpu = cpu_counts++ == 0 ? counter.value : first_cpu;
      last_cpu = counter.value;
    }
    constexpr double kMost = 1e15;
    if (counter.name == "batch" && counter.value >= 0 && counter.value <= kMost) {
      out.batch = std::max(out.batch, static_cast<int64_t>(counter.value));
    }
  }
  out.cpu = cpu_counts > 1 ? (last_cpu - first_cpu) / static_cast<double>(cpu_counts - 1) : 0;
}

}  // namespace

StepTimes step_times(const Trace& trace) {
  StepTimes out;
  out.steps = static_cast<int64_t>(trace.steps().size());
  const std::vector<double> self = self_times(trace);
  add_main_lane(out, trace, self);
  add_workers(out, trace, self);
  add_counters(out, trace);
  const double steps = std::max<double>(1, static_cast<double>(out.steps));
  StepShares& t = out.times;
  LoaderTimes& l = out.loader;
  for (double* value :
       {&out.whole, &out.ops, &out.between_ops, &t.wait, &t.read, &t.decode, &t.transform,
        &t.collate, &t.copy, &t.forward, &t.backward, &t.reduction, &t.optimizer, &t.host_waits,
        &t.other, &l.read, &l.decode, &l.transform, &l.collate}) {
    *value /= steps;
  }
  for (auto* waits : {&out.waits, &out.pageable}) {
    for (auto& entry : *waits) {
      entry.second.calls /= steps;
      entry.second.milliseconds /= steps;
      entry.second.bytes /= steps;
    }
  }
  return out;
}

}  // namespace binade::train
