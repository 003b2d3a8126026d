// binade trace: prints the tables of a trace and names the first thing to change.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profile/trace_tables.h>

#include <cstdio>

namespace binade::tool {

int run(const TraceOptions& o) {
  const std::vector<train::Trace> traces = train::read_traces(o.path);
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
