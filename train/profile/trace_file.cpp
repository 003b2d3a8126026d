// The file of a trace. Times have three decimals: whole nanoseconds, so that reading gives the same
// numbers.
#include <binade/core/io/file_system.h>
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/profile/trace.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;
using TraceJson = nlohmann::json;

constexpr int kVersion = 1;
constexpr int64_t kMostLanes = 100'000;
constexpr int64_t kMostCount = int64_t{1} << 53;
constexpr const char* kStepName = "ProfilerStep#";  // by it TensorBoard's page finds the steps

// The categories of PyTorch's profiler where it has one; a step and a user's label share one.
constexpr const char* kCategories[] = {
    "user_annotation", "phase", "cpu_op",     "kernel",         "data",
    "gpu_memcpy",      "wait",  "collective", "user_annotation"};

std::string microseconds(double time) {
  char out[40];
  std::snprintf(out, sizeof out, "%.3f", time);
  return out;
}

std::string trace_number(double value) {
  char out[40];
  std::snprintf(out, sizeof out, "%.17g", std::isfinite(value) ? value : 0.0);
  return out;
}

std::string arguments_of(const TraceEvent& event) {
  std::string out;
  const auto add = [&out](const char* name, const std::string& value) {
    out += text(out.empty() ? "" : ", ", "\"", name, "\": ", value);
  };
  if (!event.module.empty()) {
    add("module", json_quoted(event.module));
  }
  if (!event.phase.empty()) {
    add("phase", json_quoted(event.phase));
  }
  if (!event.note.empty()) {
    add(event.kind == Kind::op ? "shapes" : "note", json_quoted(event.note));
  }
  if (!event.line.empty()) {
    add("line", json_quoted(event.line));
  }
  if (event.backward) {
    add("backward", "true");
  }
  if (event.flops != 0) {
    add("flops", trace_number(event.flops));
  }
  if (event.bytes != 0) {
    add("bytes", trace_number(event.bytes));
  }
  return "{" + out + "}";
}

std::string line_of(const TraceEvent& event, int rank) {
  return text("{\"ph\": \"X\", \"cat\": \"", kCategories[event.kind],
              "\", \"name\": ", json_quoted(event.name), ", \"pid\": ", rank,
              ", \"tid\": ", event.lane, ", \"ts\": ", microseconds(event.begin),
              ", \"dur\": ", microseconds(event.end - event.begin),
              ", \"args\": ", arguments_of(event), "}");
}

std::string line_of(const TraceCounter& counter, int rank) {
  const std::string module =
      counter.module.empty() ? "" : ", \"module\": " + json_quoted(counter.module);
  return text("{\"ph\": \"C\", \"name\": ", json_quoted(counter.name), ", \"pid\": ", rank,
              ", \"tid\": 0, \"ts\": ", microseconds(counter.time), module,
              ", \"args\": {\"value\": ", trace_number(counter.value), "}}");
}

std::string metadata(const char* name, int rank, size_t lane, const std::string& arguments) {
  return text("{\"ph\": \"M\", \"name\": \"", name, "\", \"pid\": ", rank, ", \"tid\": ", lane,
              ", \"ts\": 0, \"args\": {", arguments, "}}");
}

std::string head_of(const Trace& trace, int64_t dropped) {
  std::string facts;
  for (const auto& [name, value] : trace.facts) {
    facts += text(facts.empty() ? "" : ", ", json_quoted(name), ": ", json_quoted(value));
  }
  return text(
      "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"distributedInfo\": "
      "{\"rank\": ",
      trace.rank, "},\n\"binade\": {\"version\": ", kVersion, ", \"rank\": ", trace.rank,
      ", \"dropped\": ", dropped, ", \"first_step\": ", trace.first_step,
      ", \"begin_ns\": ", trace.begin_ns, ", \"peak_flops\": ", trace_number(trace.roofline.flops),
      ", \"peak_bytes\": ", trace_number(trace.roofline.bytes), ", \"facts\": {", facts, "}},\n",
      "\"traceEvents\": [\n");
}

}  // namespace

std::string trace_json(const Trace& trace, const TraceFileOptions& options) {
  std::string body;
  int64_t dropped = trace.dropped;
  const auto most = static_cast<size_t>(std::max<int64_t>(options.max_bytes, 0));
  const auto add = [&](const std::string& line, bool is_event) {
    if (is_event && body.size() + line.size() > most) {
      ++dropped;
      return;
    }
    body += (body.empty() ? "" : ",\n") + line;
  };
  add(metadata("process_name", trace.rank, 0, text("\"name\": \"rank ", trace.rank, "\"")), false);
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    const TraceLane& one = trace.lanes[lane];
    add(metadata("thread_name", trace.rank, lane,
                 text("\"name\": ", json_quoted(one.name), one.device ? ", \"device\": true" : "")),
        false);
    add(metadata("thread_sort_index", trace.rank, lane, text("\"sort_index\": ", lane)), false);
  }
  // Steps and phases come first: a file that is cut still has them all.
  for (const bool frame : {true, false}) {
    for (const TraceEvent& event : trace.events) {
      if ((event.kind == Kind::step || event.kind == Kind::phase) == frame) {
        add(line_of(event, trace.rank), true);
      }
    }
  }
  for (const TraceCounter& counter : trace.counters) {
    add(line_of(counter, trace.rank), true);
  }
  return head_of(trace, dropped) + body + "\n]}\n";
}

// reading -----------------------------------------------------------------------------------------

namespace {

double whole_nanoseconds(double time) { return std::round(time * 1000); }

// A whole number of the file. A cast of one that is out of the range would be undefined.
int64_t whole_of(const TraceJson& object, const char* name, int64_t least, int64_t most) {
  const TraceJson& value = object.at(name);
  check(value.is_number_integer(), "got ", printable(value.dump().substr(0, 40)), " as ", name,
        ", expected a whole number");
  const bool is_huge =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most);
  const int64_t number = is_huge ? most : value.get<int64_t>();
  check(!is_huge && number >= least && number <= most, "got ", name, " ", value.dump(),
        ", expected ", least, " to ", most);
  return number;
}

template <class T>
T value_of(const TraceJson& object, const char* name, const T& otherwise) {
  const auto found = object.find(name);
  return found == object.end() ? otherwise : found->get<T>();
}

Kind kind_of(const std::string& category, const std::string& name) {
  if (category == kCategories[Kind::user]) {
    return name.starts_with(kStepName) ? Kind::step : Kind::user;
  }
  for (const Kind kind : {Kind::phase, Kind::op, Kind::kernel, Kind::data, Kind::copy, Kind::wait,
                          Kind::collective}) {
    if (category == kCategories[kind]) {
      return kind;
    }
  }
  fail("got the category '", printable(category), "', expected one of Binade's");
}

// Microseconds, from 0 to eleven days: up to there a double tells nanoseconds apart.
double time_of(const TraceJson& object, const char* name) {
  const auto time = object.at(name).get<double>();
  constexpr double kMost = 1e12;
  check(time >= 0 && time <= kMost, "got ", name, " ", time, ", expected 0 to ", kMost);
  return time;
}

TraceEvent event_of(const TraceJson& json) {
  TraceEvent event;
  event.name = json.at("name").get<std::string>();
  event.kind = kind_of(json.at("cat").get<std::string>(), event.name);
  event.lane = static_cast<int>(whole_of(json, "tid", 0, kMostLanes));
  const double begin = whole_nanoseconds(time_of(json, "ts"));
  event.begin = begin / 1000;
  event.end = (begin + whole_nanoseconds(time_of(json, "dur"))) / 1000;
  const TraceJson& arguments = json.at("args");
  event.module = value_of<std::string>(arguments, "module", "");
  event.phase = value_of<std::string>(arguments, "phase", "");
  event.note = value_of<std::string>(arguments, event.kind == Kind::op ? "shapes" : "note", "");
  event.line = value_of<std::string>(arguments, "line", "");
  event.backward = value_of(arguments, "backward", false);
  event.flops = value_of(arguments, "flops", 0.0);
  event.bytes = value_of(arguments, "bytes", 0.0);
  return event;
}

void add_metadata(Trace& trace, const TraceJson& json) {
  if (json.at("name") != "thread_name") {
    return;
  }
  const auto lane = static_cast<size_t>(whole_of(json, "tid", 0, kMostLanes));
  check(lane == trace.lanes.size(), "got lane ", lane, ", expected lane ", trace.lanes.size());
  const TraceJson& arguments = json.at("args");
  trace.lanes.push_back(
      {arguments.at("name").get<std::string>(), value_of(arguments, "device", false)});
}

void add_line(Trace& trace, const TraceJson& json) {
  const auto phase = json.at("ph").get<std::string>();
  if (phase == "M") {
    add_metadata(trace, json);
  } else if (phase == "C") {
    trace.counters.push_back(
        {json.at("name").get<std::string>(), value_of<std::string>(json, "module", ""),
         whole_nanoseconds(time_of(json, "ts")) / 1000, json.at("args").at("value").get<double>()});
  } else {
    check(phase == "X", "got the kind '", printable(phase), "', expected X, C or M");
    TraceEvent event = event_of(json);
    check(event.lane >= 0 && event.lane < static_cast<int>(trace.lanes.size()), "got lane ",
          event.lane, ", expected one of ", trace.lanes.size());
    trace.events.push_back(std::move(event));
  }
}

Trace head_of(const TraceJson& head) {
  const int64_t version = whole_of(head, "version", 0, kMostCount);
  check(version == kVersion, "got version ", version, ", expected ", kVersion);
  Trace trace;
  trace.rank = static_cast<int>(whole_of(head, "rank", 0, kMostLanes));
  trace.dropped = whole_of(head, "dropped", 0, kMostCount);
  trace.first_step = whole_of(head, "first_step", 0, kMostCount);
  trace.begin_ns = whole_of(head, "begin_ns", 0, std::numeric_limits<int64_t>::max());
  trace.roofline = {head.at("peak_flops").get<double>(), head.at("peak_bytes").get<double>()};
  trace.facts = head.at("facts").get<std::map<std::string, std::string>>();
  return trace;
}

// Takes the file apart while it is parsed: a tree of all events would take ten times the memory of
// the file.
class TraceReader {
 public:
  Trace read(const std::string& json) {
    const TraceJson rest =
        TraceJson::parse(json, [this](int depth, TraceJson::parse_event_t kind, TraceJson& value) {
          return keeps(depth, kind, value);
        });
    check(rest.is_object() && rest.contains("binade"), kOther);
    Trace trace = head_of(rest.at("binade"));
    check(rest.contains("traceEvents"), "got no traceEvents, expected a list of them");
    trace.lanes = std::move(body_.lanes);
    trace.events = std::move(body_.events);
    trace.counters = std::move(body_.counters);
    std::stable_sort(trace.events.begin(), trace.events.end(), is_before);
    return trace;
  }
  size_t line() const { return line_; }

 private:
  static constexpr const char* kOther =
      "got a trace of another program, expected one that a Profiler of Binade wrote";

  // Called after each part; false: it is not kept.
  bool keeps(int depth, TraceJson::parse_event_t kind, const TraceJson& value) {
    using Part = TraceJson::parse_event_t;
    if (kind == Part::key && depth == 1) {
      in_events_ = value == "traceEvents";
      has_head_ = has_head_ || value == "binade";
    }
    const bool is_event = in_events_ && depth == 2 && kind == Part::object_end;
    if (is_event) {
      check(has_head_, kOther);
      ++line_;
      add_line(body_, value);
    }
    return !is_event;
  }

  Trace body_;
  size_t line_ = 0;
  bool in_events_ = false, has_head_ = false;
};

}  // namespace

Trace parse_trace(const std::string& json, const std::string& name) {
  TraceReader reader;
  const auto place = [&] {
    return text("trace: ", printable(name),
                reader.line() > 0 ? text(", event ", reader.line()) : "", ": ");
  };
  try {
    return reader.read(json);
  } catch (const TraceJson::exception& error) {
    fail(place(), printable(error.what()));
  } catch (const Error& error) {
    fail(place(), error.what());
  }
}

Trace read_trace(const std::string& file) {
  constexpr uint64_t kMost = uint64_t{1} << 30;  // bytes
  const std::vector<std::byte> bytes = read_file(file, kMost);
  return parse_trace({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

std::vector<Trace> read_traces(const std::string& path) {
  if (file_kind(path) != "a directory") {
    return {read_trace(path)};
  }
  std::vector<Trace> traces;
  for (const DirectoryEntry& entry : list_directory(path)) {
    const bool is_trace = entry.name == "trace.json" ||
                          (entry.name.starts_with("trace-rank") && entry.name.ends_with(".json"));
    if (entry.is_file && is_trace) {
      traces.push_back(read_trace(path + "/" + entry.name));
    }
  }
  check(!traces.empty(), path, ": got no trace, expected trace.json; run a program with --profile");
  std::stable_sort(traces.begin(), traces.end(),
                   [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  return traces;
}

}  // namespace binade::train
