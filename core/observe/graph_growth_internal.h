// Notices recorded graphs that stay alive from step to step, such as those of losses kept in a
// list. Internal to core.
//
// Each outermost backward counts the thread's live nodes. When the smallest count of a window of
// calls has risen several windows in a row, new nodes are listed for the rest of the watch; what is
// then still alive from earlier windows tells who made it. One warning per thread.
#pragma once
#include <binade/core/autograd/node.h>

namespace binade::detail {

void sample_live_graph();
void trace(Node& node);  // lists a new node
inline void begin(Node& node) {
  ++thread_state.live_nodes;
  if (thread_state.tracing_nodes) [[unlikely]] {
    trace(node);
  }
}
void forget(Node& node);  // before a node that is traced or hooked dies

// For tests: begins the watch of this thread anew.
void restart_graph_growth();

}  // namespace binade::detail
