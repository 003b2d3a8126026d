// Detects recorded graphs that stay alive from step to step, such as those of losses kept in a
// list. Internal to core.
//
// Each outermost backward counts the thread's live nodes. If the smallest count of a window of
// calls rises several windows in a row, new nodes are listed from then on; listed nodes that
// survive their window show who made them. There is one warning per thread.
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
void forget(Node& node);  // call it before a node that is traced or hooked dies

// For tests: restarts the watch of this thread.
void restart_graph_growth();

}  // namespace binade::detail
