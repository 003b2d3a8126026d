// ThreadState: all state that the core keeps per thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace binade {

class Node;
class BackwardRun;
class HostSyncGuard;
class ObserverScope;
struct PrecisionScope;

namespace detail {

inline constexpr size_t kSmallBytes = 1024, kLineBytes = 64;
inline constexpr size_t kSmallClasses = kSmallBytes / kLineBytes + 1, kMagazineBlocks = 256;

struct FreeBlock {
  FreeBlock* next;
};

// Everything that an op looks up per thread, in one trivially destructible block: no guard on
// access. A new thread begins with these values: gradients are recorded, no policy is in force.
struct ThreadState {
  FreeBlock* free[kSmallClasses] = {};   // of the allocator (core/device/memory.h)
  FreeBlock* spare[kSmallClasses] = {};  // null or a full magazine
  uint32_t count[kSmallClasses] = {};
  bool grad_enabled = true;
  bool draining = false;
  bool pruned = false;         // `run` leaves out what grad() was not asked for
  bool recomputing = false;    // a function runs again for its gradient (core/autograd/recompute.h)
  bool tracing_nodes = false;  // new nodes are listed (core/observe/graph_growth_internal.h)
  bool module_recorded = true;   // gradients were on where `module` began
  uint32_t label = 0;            // module path of the code that runs (core/observe/label.h)
  const void* module = nullptr;  // the nn::Module whose forward runs (nn/module.h)
  uint64_t clock = 0;            // Lamport clock of recorded ops
  int64_t live_nodes = 0;        // recorded less destroyed on this thread
  Node* doomed = nullptr;        // nodes that wait for iterative destruction
  BackwardRun* run = nullptr;    // the backward in progress on this thread
  const PrecisionScope* precision = nullptr;  // null: full precision
  HostSyncGuard* syncs = nullptr;
  ObserverScope* observers = nullptr;  // who looks at every op (core/observe/observer.h)
};
extern constinit thread_local ThreadState thread_state;

}  // namespace detail
}  // namespace binade
