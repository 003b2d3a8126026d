#include <binade/core/observe/graph_growth_internal.h>

#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/warning.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace binade::detail {
namespace {

constexpr int kWindow = 16;         // backward calls
constexpr int kSuspicious = 2;      // windows that rose: list nodes from here on
constexpr int kConvinced = 5;       // windows that rose: the warning
constexpr int64_t kKeptAtMost = 1;  // per window, without counting as growth

constexpr int64_t kNotCounted = std::numeric_limits<int64_t>::max();

// The state of one thread.
struct Watch {
  int calls = 0, rises = 0;
  int64_t smallest = kNotCounted, smallest_before = kNotCounted;
  uint64_t clock = 0;  // the thread's clock when this window began
  bool over = false;
};
constinit thread_local Watch watch;

// Nodes that a thread recorded while it was suspicious. Any thread may destroy them.
struct Traced {
  std::mutex mutex;
  std::unordered_map<Node*, const Watch*> nodes;
};
Traced& traced() {
  static Traced* instance = new Traced;
  return *instance;
}

void end_tracing() {
  thread_state.tracing_nodes = false;
  std::lock_guard lock(traced().mutex);
  std::erase_if(traced().nodes, [](const auto& entry) { return entry.second == &watch; });
}

struct Kept {
  int64_t held = 0, alive = 0;  // nodes held by a tensor; all live nodes
  uint64_t newest = 0;          // sequence
  bool operator<(const Kept& other) const {
    return std::tie(held, alive, newest) < std::tie(other.held, other.alive, other.newest);
  }
};

// The op and module with the most listed nodes from before this window that a tensor holds.
std::string largest_kept(int64_t& count) {
  std::map<std::pair<const Op*, uint32_t>, Kept> kept;
  {
    std::lock_guard lock(traced().mutex);
    for (const auto& [node, owner] : traced().nodes) {
      if (owner == &watch && node->sequence <= watch.clock) {
        Kept& group = kept[{node->op, node->label}];
        group.held += (node->refs.load(std::memory_order_relaxed) & (Edge::kOne - 1)) != 0;
        group.alive += 1;
        group.newest = std::max(group.newest, node->sequence);
      }
    }
  }
  const auto most = std::max_element(
      kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  count = most == kept.end() ? 0 : std::max(most->second.held, most->second.alive);
  if (count == 0) {
    return {};
  }
  const auto& [op, label] = most->first;
  return label ? std::string(op->name) + " in module " + label_text(label) : op->name;
}

void report() {
  int64_t count = 0;
  const std::string who = largest_kept(count);
  if (count < kWindow) {  // other threads reduced the growth, or it is only a few nodes
    return;
  }
  warn(text("autograd: recorded graphs stay alive and grow from step to step: ",
            thread_state.live_nodes, " nodes and ", saved_bytes().live,
            " bytes saved for backward are held now. Most of them are kept through results of ",
            who, " (", count, " of those recorded lately). Keep item() or detach() of such a ",
            "result instead of the result, or compute it under a NoGradGuard"));
  watch.over = true;
}

void end_window() {
  const bool rose =
      watch.smallest_before != kNotCounted && watch.smallest > watch.smallest_before + kKeptAtMost;
  watch.rises = rose ? watch.rises + 1 : 0;
  if (watch.rises >= kConvinced) {
    report();
    watch.rises = 0;
  }
  if (watch.rises == 0 && thread_state.tracing_nodes) {
    end_tracing();
  }
  thread_state.tracing_nodes = watch.rises >= kSuspicious && !watch.over;
  watch.calls = 0;
  watch.smallest_before = std::exchange(watch.smallest, kNotCounted);
  watch.clock = thread_state.clock;
}

}  // namespace

void sample_live_graph() {
  if (watch.over) {
    return;
  }
  watch.smallest = std::min(watch.smallest, thread_state.live_nodes);
  if (++watch.calls == kWindow) {
    end_window();
  }
}

void trace(Node& node) {
  node.traced = true;
  std::lock_guard lock(traced().mutex);
  traced().nodes.emplace(&node, &watch);
}

void forget(Node& node) {
  if (node.traced) {
    std::lock_guard lock(traced().mutex);
    traced().nodes.erase(&node);
  }
  if (node.hooked) {
    drop_hooks(node);
  }
}

void restart_graph_growth() {
  end_tracing();
  watch = {};
}

}  // namespace binade::detail
