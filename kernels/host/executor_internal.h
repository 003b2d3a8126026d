// The state of a block in progress, shared by the sources of the executor.
#pragma once
#include <binade/kernels/host/checks.h>
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/fiber.h>
#include <binade/kernels/host/findings.h>
#include <binade/kernels/host/primitives.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <string>
#include <vector>

namespace binade::kernels::host {

// The least multiple of `to` that is not below `bytes`.
constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

constexpr int kMaxThreads = 1024;  // of a block
constexpr int kMaxWarps = kMaxThreads / 32;
constexpr size_t kMaxShared = 227 * 1024;
constexpr size_t kMaxStatic = 48 * 1024;  // __shared__ arrays of a kernel
constexpr size_t kSharedGuard = 4096;     // between dynamic shared memory and the arrays
// Dynamic shared memory, then the __shared__ arrays with guards between them.
constexpr size_t kSharedArena = size_t{1} << 20;
constexpr int kBarriers = 16;

enum class ThreadState : uint8_t { fresh, ready, at_barrier, at_collective, parked, done };

struct AsyncCopy {
  void* shared;
  const void* global;
  int bytes;
  int group;
  Site site;
};

struct Thread {
  Fiber* fiber = nullptr;      // null before it first runs and after its end
  const void* base = nullptr;  // frame that called the kernel
  ThreadState state = ThreadState::fresh;
  uint8_t barrier = 0;  // the one it waits at
  uint32_t mask = 0;    // of the collective it waits in
  void* io = nullptr;
  uint3 index{};               // threadIdx
  const char* what = nullptr;  // the last call, and where
  Site site{};
  int committed_groups = 0;
  uint32_t barriers = 0;       // of the whole block, passed so far
  uint64_t steps = 0;          // CheckOptions::step_limit
  const void* last = nullptr;  // the last instruction known, in instrumented kernels
  Site polled{};               // the last atomic, and the steps before it
  uint64_t polled_steps = 0;
  std::vector<AsyncCopy> copies;  // in flight, oldest first
};

// A __shared__ array (named_ranges.h).
struct SharedArray {
  const void* key;
  const char* name;
  size_t offset, bytes, element_bytes;
};

struct Barrier {
  int arrived = 0, expected = 0;
  Site site{};
};

// A warp collective that is waiting for lanes.
struct Rendezvous {
  uint32_t mask, arrived;
  Exchange exchange;
  Site site;
};

struct Warp {
  uint32_t present = 0;  // lanes that exist
  uint32_t ready = 0;    // lanes that can run
  uint32_t exited = 0;
  int rendezvous_count = 0;
  std::array<Rendezvous, 32> rendezvous;
};

// The state of one OS thread that runs blocks. The state of the race detector is separate (race.h).
struct Executor {
  Executor();
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  Options options;
  CheckOptions checks;
  Grid grid{};
  Body body = nullptr;
  void* context = nullptr;  // arguments of the kernel
  size_t context_bytes = 0;
  uint64_t launch = 0;  // counts the launches of the process

  int thread_count = 0, warp_count = 0;
  int live = 0, exited = 0;  // threads
  int current = -1;          // thread that runs; -1 between blocks
  uint32_t warps_ready = 0;
  uint64_t block = 0;  // its linear index
  uint64_t random = 1;
  std::vector<Thread> threads;
  std::array<Warp, kMaxWarps> warps;
  std::array<Barrier, kBarriers> barriers;

  Fiber main;
  FiberPool fibers;
  char* shared;  // kSharedArena bytes
  std::vector<SharedArray> arrays;
  size_t arrays_end = 0;  // the offset after the last one and its guard
  size_t arrays_bytes = 0;
  const char* dynamic_name = nullptr;  // of the dynamic shared memory, and its elements
  size_t dynamic_element_bytes = 0;

  std::vector<int> parked;             // threads that wait for a write before they read (race.cpp)
  uint32_t steps_left = 0;             // until look_at_steps() (steps.cpp)
  uint64_t stalled_steps = 0;          // since a thread ended or passed a barrier or collective
  const void* last_address = nullptr;  // of the last access, in the race build

  // The executor works for the running thread: its own accesses do not count. The linker may give
  // it the instrumented copy of a function of the standard library that kernels use, too.
  bool quiet = false;
  bool failed = false;
  std::string error;
};

// The executor of this OS thread while it runs a grid, else null. Not inline: a fiber may continue
// on another OS thread than it started on, so no caller may keep the address of a thread_local.
extern constinit thread_local Executor* current_executor;
Executor& executor();  // an error outside of a kernel
inline Thread& current_thread(Executor& x) { return x.threads[static_cast<size_t>(x.current)]; }

void run_block(Executor& x, uint64_t block, uint3 index);
void run_threads();  // entry function of every fiber

// Schedule ------------------------------------------------------------------------------------

// The thread to run next; -1 if none can.
int pick_next(Executor& x);
// Runs other threads until one of them makes the current thread ready again.
void wait_until_ready(Executor& x);

inline void set_ready(Executor& x, int thread) {
  x.threads[static_cast<size_t>(thread)].state = ThreadState::ready;
  x.warps[static_cast<size_t>(thread / 32)].ready |= 1u << thread % 32;
  x.warps_ready |= 1u << thread / 32;
}
inline void clear_ready(Executor& x, int thread) {
  uint32_t& ready = x.warps[static_cast<size_t>(thread / 32)].ready;
  ready &= ~(1u << thread % 32);
  if (ready == 0) {
    x.warps_ready &= ~(1u << thread / 32);
  }
}
// Calls f(lane) for the bits of a mask.
template <class F>
inline void for_lanes(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) {
    f(std::countr_zero(mask));
  }
}

// Errors ----------------------------------------------------------------------------------------

// Parts of a text: "(1,0,0)", "softmax.cu:12", "thread (3,0,0) (warp 0 lane 3) at __syncwarp at
// ...".
struct Index {
  uint3 value;
};
struct Waiting {
  const Executor& x;
  int thread;
};
struct Mask {
  uint32_t value;
};
// The calls between the kernel's thread function and the function with this frame (its
// __builtin_frame_address(0)), as a number: two lanes at one line of a helper are at the same call
// only if they came on the same path. Needs frame pointers in kernels.
uint64_t call_path(const Executor& x, const void* frame);
inline bool same_call(const Site& a, const Site& b) {
  return a.line == b.line && a.file == b.file && a.path == b.path;
}
// ", reached by another call" if two sites differ in their paths only.
const char* other_path(const Site& a, const Site& b);

std::string to_string(Index index);
std::string to_string(Site site);
std::string to_string(const Waiting& waiting);
std::string to_string(Mask mask);
uint3 block_index(const Executor& x, uint64_t block);

// An error of the current thread: its kind and place, and the thread that it conflicts with.
struct Fault {
  FindingKind kind;
  Site site{};
  int other = -1;
};
// Ends the launch with a finding of this text. The running fiber `self` is abandoned, so nothing on
// its stack may own memory: callers of fail_thread() pass parts that own none, never a std::string.
[[noreturn]] void die(Executor& x, Fiber& self, const Fault& fault, std::string message);
[[noreturn]] void deadlock(Executor& x, Fiber& self);
[[noreturn]] void fail_kernel(const Fault& fault, std::string message);
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail_thread(const Fault& fault, const Parts&... parts) {
  static_assert((!std::is_same_v<Parts, std::string> && ...));
  executor().quiet = true;  // until the end of the block
  fail_kernel(fault, text(parts...));
}

// Sets Executor::quiet for a scope.
class Quiet {
 public:
  explicit Quiet(Executor& x) : x_(x), before_(x.quiet) { x_.quiet = true; }
  ~Quiet() { x_.quiet = before_; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  Executor& x_;
  bool before_;
};

// Steps -----------------------------------------------------------------------------------------

// Called every kStepsAtOnce steps: checks the limit, and lets other threads run.
constexpr uint32_t kStepsAtOnce = 4096;
void look_at_steps(Executor& x);
// An atomic of the running thread: a thread that polls one without end is ended at its line. The
// compiler gives the basic block around it, which has no statement of its own, any line before it.
inline void note_poll(Executor& x, Site site) {
  Thread& self = current_thread(x);
  self.polled = site;
  self.polled_steps = self.steps + (kStepsAtOnce - x.steps_left);
}
inline void count_step(Executor& x) {
  if (--x.steps_left == 0) {
    look_at_steps(x);
  }
}

// Memory ----------------------------------------------------------------------------------------

// Asks AddressSanitizer about memory that the executor touches for a kernel.
void check_address(const void* p, size_t bytes, const char* what, Site site);
inline bool in_arena(const Executor& x, const void* p) {
  return static_cast<size_t>(static_cast<const char*>(p) - x.shared) < kSharedArena;
}
// The __shared__ array with this offset in it, null if there is none.
inline const SharedArray* array_at(const Executor& x, size_t offset) {
  for (const SharedArray& array : x.arrays) {
    if (offset - array.offset < array.bytes) {
      return &array;
    }
  }
  return nullptr;
}
// True for bytes of dynamic shared memory or of one array.
inline bool in_shared(const Executor& x, const void* p, size_t bytes) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(p) - x.shared);
  if (offset <= x.grid.shared_bytes && bytes <= x.grid.shared_bytes - offset) {
    return true;
  }
  const SharedArray* array = offset < kSharedArena ? array_at(x, offset) : nullptr;
  return array != nullptr && bytes <= array->bytes - (offset - array->offset);
}
// Forgets the arrays of the last launch; fills shared memory with 0xFF for a new block.
void forget_shared_arrays(Executor& x);
void fill_shared(Executor& x);
// The element of a named range or shared array at an address (named_ranges.h).
FoundElement element_of(const Executor& x, const void* address, bool nearest);

}  // namespace binade::kernels::host
