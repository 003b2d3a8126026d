// A trace as tables: where the time of a step goes, by phase, op, module and kernel, each with the
// share of what this machine was measured to do (Roofline).
#pragma once
#include <binade/train/profile/trace.h>

#include <string>
#include <vector>

namespace binade::train {

// The time of events that have something in common, per step, on the lane of the steps. Time inside
// other events does not count twice, so all rows of a table add up to the step.
struct TraceRow {
  std::string name;    // "conv2d", "layers.0.linear", "cuda:0 softmax_forward"
  std::string detail;  // "forward", "backward"; shapes
  double calls = 0;    // per step
  double milliseconds = 0;
  double share = 0;             // of the step
  double flops = 0, bytes = 0;  // per step
  double roofline = 0;          // the least time for this work over the time; 0: unknown
};

// By op and pass; the optimizer, the wait for data and the time outside of ops are rows too.
// Largest first.
std::vector<TraceRow> rows_by_op(const Trace& trace);
// By module path, with the ops below it.
std::vector<TraceRow> rows_by_module(const Trace& trace);
// By kernel of a device; without a device by op, pass and shapes, each of which is one sequence of
// CPU kernels.
std::vector<TraceRow> rows_by_kernel(const Trace& trace);
// By line of the program: of each wait and copy whose line is known, and of each ProfileLabel, with
// the ops inside of it. `detail` is the name of the wait or label. Empty without any.
std::vector<TraceRow> rows_by_line(const Trace& trace);
// Phases of a step: those of the engine, and "other".
std::vector<TraceRow> rows_by_phase(const Trace& trace);

// All of them as text, `most` rows each, after the facts of the run; and waits with their lines,
// copies, communication and memory.
std::string trace_tables(const Trace& trace, size_t most = 20);

// A flame graph as SVG: phases, then modules, then ops; the width is time. One file without links.
std::string flame_graph(const Trace& trace);

}  // namespace binade::train
