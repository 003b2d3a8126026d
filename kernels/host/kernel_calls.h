// What kernels and their launches see of the executor (executor.h). A header of its own, because
// the lab compiles it with every kernel: it includes nothing of the standard library but types.
#pragma once
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>
#include <type_traits>

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
// The block's shared memory; an error if the launch asked for less than `bytes`.
void* shared_base(size_t bytes);

// __shared__ arrays -------------------------------------------------------------------------------
// Their names stand in findings (named_ranges.h).

// A __shared__ array of the running kernel, in a place of its own with guards around it, the same
// for all threads of a launch. `key` tells declarations apart: its address stands for one
// declaration in one instantiation. Together with dynamic shared memory a block has at most 227
// KiB, and static arrays at most 48 KiB of it, as in CUDA.
void* shared_variable(const void* key, const char* name, size_t bytes, size_t alignment,
                      size_t element_bytes);
// extern __shared__: the dynamic shared memory of the launch (Grid::shared_bytes), under a name.
void* dynamic_shared(const char* name, size_t alignment, size_t element_bytes);

// Declares a __shared__ variable; `key` is any variable of static storage in the function:
//   static char tile_key;
//   auto& tile = host::shared_variable<float[32][33]>(&tile_key, "tile");
template <class T>
T& shared_variable(const void* key, const char* name) {
  using Element = std::remove_all_extents_t<T>;
  return *static_cast<T*>(shared_variable(key, name, sizeof(T), alignof(T), sizeof(Element)));
}
// extern __shared__ T name[]:
//   auto* name = host::dynamic_shared<T>("name");
template <class T>
T* dynamic_shared(const char* name) {
  return static_cast<T*>(dynamic_shared(name, alignof(T), sizeof(T)));
}

}  // namespace binade::kernels::host
