// The fiber executor: runs a kernel's threads as fibers of the calling OS thread, block after
// block. A thread runs until it blocks in a barrier or a warp collective; then the schedule picks
// the next one. Whatever CUDA leaves undefined is an error here that names kernel, block, thread,
// source file and line. docs/host-execution.md explains its use.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>

namespace binade::kernels::host {

// The order in which blocks and threads run. A warp runs until none of its lanes can, because a
// random order of lanes hides more races than it shows.
enum class Schedule : uint8_t { forward, reverse, random };

struct Options {
  Schedule schedule = Schedule::forward;
  uint64_t seed = 1;                   // of the random schedule
  int os_threads = 1;                  // OS threads that run blocks; always 1 in the race build
  bool late_async = true;              // an asynchronous copy lands at its wait, not at its issue
  bool shuffles_order_memory = false;  // for the race detector; CUDA promises no such order
  bool count_accesses = false;         // for the access report (access_report.h; race build)
};
// Initialised at first use from BINADE_HOST_SCHEDULE (forward, reverse, random), BINADE_HOST_SEED,
// BINADE_HOST_THREADS and BINADE_HOST_ASYNC (late, early). Change it only while no kernel runs.
Options& options();
// The initial value of options(); throws Error if a variable has an invalid value.
Options options_from_environment();

// A kernel broke a rule of CUDA.
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

// The building blocks of the primitives (primitives.h). A kernel's thread calls them.
struct Site {
  const char* file;
  int line;
  uint64_t path = 0;  // of calls from the kernel to this place: one line of a helper has several
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
// The block's shared memory; an error if the launch asked for less than `bytes`.
void* shared_base(size_t bytes);

// True if this build has the check.
bool has_race_detector();
bool has_address_sanitizer();

}  // namespace binade::kernels::host
