// The fiber executor: runs a kernel's threads as fibers of the calling OS thread, block after
// block. A thread runs until it blocks in a barrier or a warp collective; then the schedule picks
// the next. Whatever CUDA leaves undefined there is one error that names kernel, block, thread,
// source file and line. docs/host-execution.md tells how to use it.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>

namespace binade::kernels::host {

// In which order blocks and threads run. Warp-greedy: a warp runs on until none of its lanes can,
// because lanes in random order hide more races than they show.
enum class Schedule : uint8_t { forward, reverse, random };

struct Options {
  Schedule schedule = Schedule::forward;
  uint64_t seed = 1;       // of the random schedule
  int os_threads = 1;      // blocks are spread over so many threads; always 1 in the race build
  bool late_async = true;  // an asynchronous copy lands when it is waited for, not when issued
  bool shuffles_order_memory = false;  // for the race detector; CUDA promises no such order
  bool count_accesses = false;         // for the access report (access_report.h; race build)
};
// From BINADE_HOST_SCHEDULE (forward, reverse, random), BINADE_HOST_SEED, BINADE_HOST_THREADS and
// BINADE_HOST_ASYNC (late, early) at first use. Change it only while no kernel runs.
Options& options();
// What options() begins with; throws Error on a value that none of them has.
Options options_from_environment();

// A rule of CUDA that a kernel broke.
class KernelError : public Error {
 public:
  using Error::Error;
};

struct Grid {
  const char* kernel;  // its name, for errors
  dim3 grid, block;
  size_t shared_bytes;  // what shared_mem() may use
};
using Body = void (*)(void*);

// Runs body(context) once per thread of every block.
void run_grid(const Grid& grid, Body body, void* context);
bool inside_kernel();

// What the primitives (primitives.h) are made of. All are called by a kernel's thread.
struct Site {
  const char* file;
  int line;
};
using Exchange = void (*)(void* const* lanes, uint32_t mask);
// Waits for the lanes of `mask`; the last to arrive runs `exchange` on the `io` of all of them.
struct Collective {
  uint32_t mask;
  Exchange exchange;
  const char* what;
  bool orders_memory;
};
void collective(const Collective& call, void* io, Site site);
// Barrier `id` of the block for `count` threads; 0 for all of them.
void barrier(int id, int count, Site site);
[[noreturn]] void fail_kernel(std::string message);
// The block's shared memory; an error where the launch asked for less than `bytes`.
void* shared_base(size_t bytes);

// Which checks this build has.
bool has_race_detector();
bool has_address_sanitizer();

}  // namespace binade::kernels::host
