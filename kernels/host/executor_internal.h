// The state of a block in progress, shared by the sources of the executor.
#pragma once
#include <binade/kernels/host/fiber.h>
#include <binade/kernels/host/primitives.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <string>
#include <vector>

namespace binade::kernels::host {

constexpr int kMaxThreads = 1024;  // of a block
constexpr int kMaxWarps = kMaxThreads / 32;
constexpr size_t kMaxShared = 227 * 1024;
constexpr int kBarriers = 16;

enum class ThreadState : uint8_t { fresh, ready, at_barrier, at_collective, done };

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
  std::vector<AsyncCopy> copies;  // in flight, oldest first
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
  Grid grid{};
  Body body = nullptr;
  void* context = nullptr;

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
  char* shared;  // kMaxShared bytes

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

// Ends the launch with this text. The running fiber `self` is abandoned, so nothing on its stack
// may own memory: callers of fail_thread() pass parts that own none, never a std::string.
[[noreturn]] void die(Executor& x, Fiber& self, std::string message);
[[noreturn]] void deadlock(Executor& x, Fiber& self);
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail_thread(const Parts&... parts) {
  static_assert((!std::is_same_v<Parts, std::string> && ...));
  fail_kernel(text(parts...));
}

// Memory ----------------------------------------------------------------------------------------

// Asks AddressSanitizer about memory that the executor touches for a kernel.
void check_address(const void* p, size_t bytes, const char* what, Site site);
inline bool in_shared(const Executor& x, const void* p, size_t bytes) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(p) - x.shared);
  return offset <= x.grid.shared_bytes && bytes <= x.grid.shared_bytes - offset;
}

}  // namespace binade::kernels::host
