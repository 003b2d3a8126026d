// binade trace: the tables of a trace, and what to change first.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profile/trace_tables.h>

#include <algorithm>
#include <cstdio>

namespace binade::tool {

std::vector<train::Trace> read_traces(const std::string& path) {
  if (file_kind(path) != "a directory") {
    return {train::read_trace(path)};
  }
  std::vector<train::Trace> traces;
  for (const DirectoryEntry& entry : list_directory(path)) {
    const bool is_trace = entry.name == "trace.json" ||
                          (entry.name.starts_with("trace-rank") && entry.name.ends_with(".json"));
    if (entry.is_file && is_trace) {
      traces.push_back(train::read_trace(path + "/" + entry.name));
    }
  }
  check(!traces.empty(), path, ": got no trace, expected trace.json; run a program with --profile");
  std::stable_sort(traces.begin(), traces.end(),
                   [](const train::Trace& a, const train::Trace& b) { return a.rank < b.rank; });
  return traces;
}

int run(const TraceOptions& o) {
  const std::vector<train::Trace> traces = read_traces(o.path);
  if (!o.flame.empty()) {
    write_file_durably(o.flame, train::flame_graph(traces[0]));
  }
  for (const train::Trace& trace : traces) {
    std::fputs(train::trace_tables(trace, static_cast<size_t>(o.rows)).c_str(), stdout);
    std::fputs("\n", stdout);
  }
  if (!traces[0].steps().empty()) {
    std::fputs(to_text(train::find_stalls(traces)).c_str(), stdout);
  }
  return 0;
}

}  // namespace binade::tool
