// The race detector: happens-before by vector clocks over every access of a kernel, which
// -fsanitize=thread reports (race_hooks.cpp). What orders two accesses:
//  - program order of a thread; __syncthreads(), named barriers and __syncwarp();
//  - __threadfence() by the writer, an atomic, an atomic on the same address that comes later, and
//    __threadfence() by the reader: within a block and across blocks. Barriers may stand between
//    the fences and the atomics, so one thread can do the atomics for its block.
// Everything else is a race, whatever the schedule made of it. In other builds all of this is
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

// Held while a grid runs: the detector's state is one.
struct GridLock {
  GridLock();
  ~GridLock();
};

void begin_grid(Executor& x);
void end_grid(Executor& x);
void begin_block(Executor& x);
void end_block(Executor& x);

// Throws out of the kernel (fail_kernel) where an access races.
void access(Executor& x, const Access& access, Site site);
void access_by_instruction(Executor& x, const Access& access, const void* instruction);

// The threads that wait at a barrier and the current one have met.
void join_barrier(Executor& x, int id);
void join_warp(Executor& x, uint32_t lanes);  // of the current warp
void fence(Executor& x);
void atomic_order(Executor& x, const void* address);  // of an atomic of the current thread

#else

struct GridLock {
  GridLock() {}  // so that a variable of this type is no unused one
};
inline void begin_grid(Executor&) {}
inline void end_grid(Executor&) {}
inline void begin_block(Executor&) {}
inline void end_block(Executor&) {}
inline void access(Executor&, const Access&, Site) {}
inline void join_barrier(Executor&, int) {}
inline void join_warp(Executor&, uint32_t) {}
inline void fence(Executor&) {}
inline void atomic_order(Executor&, const void*) {}

#endif

}  // namespace binade::kernels::host::race
