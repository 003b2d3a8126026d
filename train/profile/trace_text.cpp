// The tables of a trace as text.
#include <binade/core/observe/text_table_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;
using Table = std::vector<std::vector<std::string>>;

std::string rate(double amount, double milliseconds) {
  return amount > 0 && milliseconds > 0 ? fixed(amount / milliseconds * 1e-6, 1) : "-";
}

std::string megabytes(double bytes) { return fixed(bytes / 1e6, 1) + " MB"; }

// A long list of shapes keeps its begin and its end.
std::string middle_shortened(const std::string& s) {
  constexpr size_t kMost = 60, kEnd = 26;
  return s.size() <= kMost ? s : s.substr(0, kMost - kEnd - 3) + "..." + s.substr(s.size() - kEnd);
}

std::string table_of(const std::string& title, const std::string& name, const std::string& detail,
                     const std::vector<TraceRow>& rows, size_t most) {
  if (rows.empty()) {
    return "";
  }
  Table table{{name, detail, "calls", "ms", "share", "GFLOP/s", "GB/s", "of roofline"}};
  double rest = 0, share = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TraceRow& row = rows[i];
    if (i >= most) {
      rest += row.milliseconds;
      share += row.share;
      continue;
    }
    table.push_back({row.name, middle_shortened(row.detail), fixed(row.calls, 1),
                     fixed(row.milliseconds, 3), percent_of(row.share, 1),
                     rate(row.flops, row.milliseconds), rate(row.bytes, row.milliseconds),
                     row.roofline > 0 ? percent_of(row.roofline, 1) : "-"});
  }
  if (rows.size() > most) {
    table.push_back({text("(", rows.size() - most, " more)"), "", "", fixed(rest, 3),
                     percent_of(share, 1), "", "", ""});
  }
  return text("\n", title, "\n", text_table(table));
}

std::string facts_of(const Trace& trace) {
  const size_t steps = trace.steps().size();
  std::string out =
      text("rank ", trace.rank, ", ", steps, " steps from step ", trace.first_step, ", ",
           fixed(trace.duration() * 1e-3 / std::max<double>(1, double(steps)), 3), " ms per step");
  for (const char* name : {"device", "cores", "threads", "activities"}) {
    if (const auto found = trace.facts.find(name); found != trace.facts.end()) {
      out += text(", ", name, " ", found->second);
    }
  }
  out += "\n";
  if (trace.roofline.flops > 0) {
    out +=
        text("roofline measured here: ", fixed(trace.roofline.flops * 1e-9, 1),
             " GFLOP/s (f32 product), ", fixed(trace.roofline.bytes * 1e-9, 1), " GB/s (copy)\n");
  }
  if (trace.dropped > 0) {
    out += text(trace.dropped,
                " events had no room and are missing: sums below are too small; record fewer "
                "steps\n");
  }
  return out;
}

// The table by source line, and what is to be said of lines that are not known.
std::string lines_of(const Trace& trace, size_t most) {
  bool any_op = false, any_line = false, any_address = false;
  for (const TraceEvent& event : trace.events) {
    any_op = any_op || event.kind == Kind::op;
    any_line = any_line || !event.line.empty();
    any_address = any_address || event.line.find("+0x") != std::string::npos;
  }
  std::string out = table_of("By source line, per step", "line", "what", rows_by_line(trace), most);
  if (any_address) {
    out += "FUNCTION (PROGRAM+0xADDRESS): no debug information there; compile with -g1 for lines\n";
  }
  const auto activities = trace.facts.find("activities");
  const bool wanted = activities != trace.facts.end() &&
                      activities->second.find("source lines") != std::string::npos;
  if (wanted && any_op && !any_line) {
    out +=
        "\nNo op has a source line: addr2line (of binutils) is missing, or the program is "
        "stripped\n";
  }
  return out;
}

struct Sum {
  double calls = 0, milliseconds = 0, bytes = 0;
};

// Waits, copies and communication of all host threads, each with its line if it is known.
std::string waits_of(const Trace& trace, size_t most) {
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == Kind::wait || event.kind == Kind::copy || event.kind == Kind::collective ||
        event.kind == Kind::data) {
      Sum& sum = sums[{event.name, event.note}];
      sum.calls += 1;
      sum.milliseconds += (event.end - event.begin) * 1e-3;
      sum.bytes += event.bytes;
    }
  }
  if (sums.empty()) {
    return "";
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.milliseconds > b.second.milliseconds;
  });
  const double steps = std::max<double>(1, static_cast<double>(trace.steps().size()));
  Table table{{"wait, copy or stage", "where", "calls", "ms", "MB"}};
  for (size_t i = 0; i < std::min(rows.size(), most); ++i) {
    const auto& [key, sum] = rows[i];
    table.push_back({key.first, key.second, fixed(sum.calls / steps, 1),
                     fixed(sum.milliseconds / steps, 3),
                     sum.bytes > 0 ? fixed(sum.bytes * 1e-6 / steps, 2) : "-"});
  }
  return "\nWaits, copies and loader stages, per step and over all threads\n" + text_table(table);
}

std::string counters_of(const Trace& trace) {
  struct Range {
    double first = 0, last = 0, peak = 0;
    bool any = false;
  };
  std::map<std::string, Range> ranges;
  for (const TraceCounter& counter : trace.counters) {
    Range& range = ranges[counter.name];
    range.first = range.any ? range.first : counter.value;
    range.peak = range.any ? std::max(range.peak, counter.value) : counter.value;
    range.last = counter.value;
    range.any = true;
  }
  if (ranges.empty()) {
    return "";
  }
  Table table{{"counter", "first", "last", "largest"}};
  for (const auto& [name, range] : ranges) {
    const bool is_bytes =
        name.ends_with("allocated") || name.ends_with("reserved") || name.starts_with("saved");
    const auto shown = [is_bytes](double v) { return is_bytes ? megabytes(v) : fixed(v, 0); };
    table.push_back({name, shown(range.first), shown(range.last), shown(range.peak)});
  }
  return "\nCounters\n" + text_table(table);
}

}  // namespace

std::string trace_tables(const Trace& trace, size_t most) {
  std::string out = facts_of(trace);
  Table phases{{"phase", "ms", "share"}};
  for (const TraceRow& row : rows_by_phase(trace)) {
    phases.push_back({row.name, fixed(row.milliseconds, 3), percent_of(row.share, 1)});
  }
  out += "\nWhere a step's time goes\n" + text_table(phases);
  out += table_of("By op, per step", "op", "pass", rows_by_op(trace), most);
  out += table_of("By module, per step", "module", "pass", rows_by_module(trace), most);
  out += lines_of(trace, most);
  out += table_of("By kernel, per step", "kernel", "on", rows_by_kernel(trace), most);
  return out + waits_of(trace, most) + counters_of(trace);
}

}  // namespace binade::train
