// The race detector: happens-before by vector clocks over every access of a kernel, which
// -fsanitize=thread reports (race_hooks.cpp). Two accesses are ordered by
//  - program order of a thread; __syncthreads(), named barriers and __syncwarp();
//  - __threadfence() by the writer, an atomic, a later atomic on the same address, and
//    __threadfence() by the reader: within a block and across blocks. Barriers may stand between
//    the fences and the atomics, so one thread can do the atomics for its block.
// Everything else is a race, even if the schedule did no harm. In other builds these functions are
// empty.
#pragma once
#include <binade/kernels/host/executor_internal.h>

namespace binade::kernels::host::race {

enum class Kind : uint8_t { read, write, atomic, copy_issued, copy_landed };

struct Access {
  const void* address;
  size_t bytes;
  Kind kind;
  int thread;
};

#if BINADE_HOST_RACE

// Held while a grid runs: there is only one detector.
struct GridLock {
  GridLock();
  ~GridLock();
};

void begin_grid(Executor& x);
void end_grid(Executor& x);
void begin_block(Executor& x);
void end_block(Executor& x);

// Throws out of the kernel (fail_kernel) if an access races.
void access(Executor& x, const Access& access, Site site);
void access_by_instruction(Executor& x, const Access& access, const void* instruction);

// Joins the clocks of the current thread and of those that wait at a barrier.
void join_barrier(Executor& x, int id);
void join_warp(Executor& x, uint32_t lanes);  // of the current warp
// Counts an operation of several lanes of one warp or block for the access report.
void count_together(const Executor& x, const char* what, Site site, int lanes);
void fence(Executor& x);
void atomic_order(Executor& x, const void* address);  // for an atomic of the current thread

#else

struct GridLock {
  GridLock() {}  // avoids the warning about an unused variable
};
inline void begin_grid(Executor&) {}
inline void end_grid(Executor&) {}
inline void begin_block(Executor&) {}
inline void end_block(Executor&) {}
inline void access(Executor&, const Access&, Site) {}
inline void join_barrier(Executor&, int) {}
inline void join_warp(Executor&, uint32_t) {}
inline void count_together(const Executor&, const char*, Site, int) {}
inline void fence(Executor&) {}
inline void atomic_order(Executor&, const void*) {}

#endif

}  // namespace binade::kernels::host::race
