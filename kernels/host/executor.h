// The fiber executor: runs a kernel's threads as fibers of the calling OS thread, block after
// block. A thread runs until it blocks in a barrier, a warp collective or an asynchronous wait;
// then the schedule picks the next. Whatever CUDA leaves undefined there is one error that names
// block, thread, source file and line.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>

namespace binade::kernels::host {

// In which order blocks and threads run. Warp-greedy: a warp runs on until none of its lanes can.
enum class Schedule : uint8_t { forward, reverse, random };

struct Options {
  Schedule schedule = Schedule::forward;
  uint64_t seed = 1;       // of the random schedule
  int os_threads = 1;      // blocks are spread over so many threads
  bool strict = true;      // divergent barriers, masks that name other lanes, ... are errors
  bool late_async = true;  // an asynchronous copy lands when it is waited for, not when issued
  bool shuffles_order_memory = false;  // for the race detector; CUDA promises no such order
};
// From BINADE_HOST_SCHEDULE (forward, reverse, random), BINADE_HOST_SEED, BINADE_HOST_THREADS and
// BINADE_HOST_ASYNC (late, early) at first use. Change it only while no kernel runs.
Options& options();

// A rule of CUDA that a kernel broke.
class KernelError : public Error {
 public:
  using Error::Error;
};

using Body = void (*)(void*);

// Runs body(context) once per thread of every block. shared_bytes: what shared_mem() may use.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, Body body, void* context);

// What the primitives of host/device.h are made of. All are called on a kernel's fiber.
struct Site {
  const char* file;
  int line;
};
using Exchange = void (*)(void* const* lanes, uint32_t mask);
// Waits for the lanes of `mask`; the last to arrive runs `exchange` on the `io` of all of them.
void collective(uint32_t mask, Exchange exchange, void* io, const char* what, bool orders_memory,
                Site site);
// Barrier `id` of the block for `count` threads; 0 for all of them.
void barrier(int id, int count, Site site);
void yield();
[[noreturn]] void fail_kernel(std::string message);
// The block's shared memory; an error where the launch asked for less than `bytes`.
void* shared_base(size_t bytes);
bool inside_kernel();

}  // namespace binade::kernels::host
