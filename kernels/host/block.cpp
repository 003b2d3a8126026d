// One block: its threads as fibers, and the schedule that picks which of them runs.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

#include <cstring>

namespace binade::kernels::host {

constinit thread_local Executor* current_executor = nullptr;

Executor& executor() {
  Executor* x = current_executor;
  if (x == nullptr || x->current < 0) {
    throw KernelError("a device function was called outside of a kernel");
  }
  return *x;
}
bool inside_kernel() { return current_executor != nullptr && current_executor->current >= 0; }

// Schedule --------------------------------------------------------------------------------------

namespace {

uint32_t next_random(Executor& x) {
  x.random ^= x.random << 13;
  x.random ^= x.random >> 7;
  x.random ^= x.random << 17;
  return static_cast<uint32_t>(x.random >> 32);
}

// The next bit of `mask` after `from` in the order of the schedule, cyclic.
int pick_bit(Executor& x, uint32_t mask, int from) {
  switch (x.options.schedule) {
    case Schedule::forward: {
      const uint32_t above = mask & (~1u << from);  // 0 for 31
      return std::countr_zero(above != 0 ? above : mask);
    }
    case Schedule::reverse: {
      const uint32_t below = mask & ((1u << from) - 1);
      return 31 - std::countl_zero(below != 0 ? below : mask);
    }
    case Schedule::random: break;
  }
  for (uint32_t skip = next_random(x) % static_cast<uint32_t>(std::popcount(mask)); skip > 0;
       --skip) {
    mask &= mask - 1;
  }
  return std::countr_zero(mask);
}

}  // namespace

int pick_next(Executor& x) {
  if (x.warps_ready == 0) {
    if (x.parked.empty()) {
      return -1;
    }
    // No write that it waits for can come. Takes the last thread, because others may wait for it.
    set_ready(x, x.parked.back());
    x.parked.pop_back();
  }
  const int before_first = x.options.schedule == Schedule::forward ? 31 : 0;
  int warp = before_first, lane = before_first;
  if (x.current >= 0) {
    warp = x.current / 32;
    lane = x.current % 32;
    constexpr uint32_t kStay = 64;  // a random schedule leaves a warp once in this many picks
    const bool stays = x.options.schedule == Schedule::random ? next_random(x) % kStay != 0
                                                              : !x.checks.interleaved;
    if ((x.warps_ready >> warp & 1) != 0 && stays) {
      return warp * 32 + pick_bit(x, x.warps[static_cast<size_t>(warp)].ready, lane);
    }
  }
  warp = pick_bit(x, x.warps_ready, warp);
  return warp * 32 + pick_bit(x, x.warps[static_cast<size_t>(warp)].ready, before_first);
}

void wait_until_ready(Executor& x) {
  const int thread = x.current;
  clear_ready(x, thread);
  Thread& self = x.threads[static_cast<size_t>(thread)];
  const int next = pick_next(x);
  if (next < 0) {
    deadlock(x, *self.fiber);
  }
  if (next == thread) {
    return;
  }
  Thread& other = x.threads[static_cast<size_t>(next)];
  if (other.fiber == nullptr) {
    other.fiber = x.fibers.take();
  }
  x.current = next;
  switch_fiber(*self.fiber, *other.fiber);
  threadIdx = self.index;
}

// Threads ---------------------------------------------------------------------------------------

namespace {

// Runs the kernel for the current thread; returns the text of an uncaught exception.
std::string run_body(Executor& x) {
  current_thread(x).base = __builtin_frame_address(0);
  threadIdx = current_thread(x).index;
  try {
    x.body(x.context);
  } catch (const std::exception& error) {
    return text("exception in the kernel: ", error.what());
  } catch (...) {
    return "exception in the kernel";
  }
  return {};
}

int waiting_at_block_barrier(const Executor& x) {
  for (int i = 0; i < x.thread_count; ++i) {
    const Thread& thread = x.threads[static_cast<size_t>(i)];
    if (thread.state == ThreadState::at_barrier && thread.barrier == 0) {
      return i;
    }
  }
  return -1;
}

// Checks the rules for the end of a thread.
void check_exit(Executor& x, Fiber& self) {
  const Quiet quiet(x);
  const Barrier& all = x.barriers[0];
  if (all.arrived > 0) {
    die(x, self, {FindingKind::barrier_divergence, {}, waiting_at_block_barrier(x)},
        text("this thread ended while others wait at __syncthreads at ", all.site));
  }
  const int lane = x.current % 32;
  const Warp& warp = x.warps[static_cast<size_t>(x.current / 32)];
  for (int i = 0; i < warp.rendezvous_count; ++i) {
    const Rendezvous& waiting = warp.rendezvous[static_cast<size_t>(i)];
    if ((waiting.mask >> lane & 1) != 0) {
      const int other = (x.current & ~31) + std::countr_zero(waiting.arrived);
      die(x, self, {FindingKind::warp_divergence, {}, other},
          text("this lane ended, but the mask of a waiting lane names it: ", Waiting{x, other}));
    }
  }
}

// Ends the current thread. Returns when this fiber has another thread to run: at once if the next
// thread has not started yet.
void end_thread(Executor& x, Fiber& self) {
  Thread& thread = current_thread(x);
  check_exit(x, self);
  thread.state = ThreadState::done;
  thread.fiber = nullptr;
  thread.committed_groups = 0;
  thread.copies.clear();
  clear_ready(x, x.current);
  x.warps[static_cast<size_t>(x.current / 32)].exited |= 1u << x.current % 32;
  ++x.exited;
  x.stalled_steps = 0;
  if (--x.live == 0) {
    x.fibers.put(&self);
    switch_fiber(self, x.main);
    return;
  }
  const int next = pick_next(x);
  if (next < 0) {
    deadlock(x, self);
  }
  x.current = next;
  Thread& other = x.threads[static_cast<size_t>(next)];
  if (other.fiber == nullptr) {
    other.fiber = &self;  // so that threads that never block need no switch
    return;
  }
  x.fibers.put(&self);
  switch_fiber(self, *other.fiber);
}

}  // namespace

void run_threads() {
  enter_fiber();
  for (;;) {
    Executor& x = executor();  // after each switch: another OS thread may have taken this fiber
    Fiber& self = *current_thread(x).fiber;
    std::string error = run_body(x);
    if (!error.empty()) {
      die(x, self, {FindingKind::exception, {}}, std::move(error));
    }
    end_thread(x, self);
  }
}

void* shared_base(size_t bytes) {
  Executor& x = executor();
  if (bytes > x.grid.shared_bytes) {
    fail_thread({FindingKind::bad_argument}, "shared_mem() of ", bytes,
                " bytes, but the launch gave ", x.grid.shared_bytes);
  }
  return x.shared;
}

void run_block(Executor& x, uint64_t block, uint3 index) {
  x.live = x.thread_count;
  x.exited = 0;
  x.block = block;
  x.barriers = {};
  x.warps_ready = 0;
  for (int w = 0; w < x.warp_count; ++w) {
    const int lanes = std::min(32, x.thread_count - w * 32);
    Warp& warp = x.warps[static_cast<size_t>(w)];
    warp.present = warp.ready = ~0u >> (32 - lanes);
    warp.exited = 0;
    warp.rendezvous_count = 0;
    x.warps_ready |= 1u << w;
  }
  for (int i = 0; i < x.thread_count; ++i) {
    Thread& thread = x.threads[static_cast<size_t>(i)];
    thread.state = ThreadState::fresh;
    thread.barriers = 0;
    thread.steps = 0;
    thread.last = nullptr;
    thread.polled = {};
  }
  blockIdx = index;
  fill_shared(x);  // uninitialised shared memory reads as NaN
  x.parked.clear();
  x.quiet = false;
  x.stalled_steps = 0;
  x.steps_left = kStepsAtOnce;
  race::begin_block(x);
  x.current = -1;
  x.current = pick_next(x);
  Thread& first = current_thread(x);
  first.fiber = x.fibers.take();
  switch_fiber(x.main, *first.fiber);
  x.current = -1;
  race::end_block(x);
  if (x.failed) {
    x.fibers.abandon_all();
    for (Thread& thread : x.threads) {
      thread.fiber = nullptr;
      thread.committed_groups = 0;
      thread.copies.clear();
    }
  }
}

}  // namespace binade::kernels::host
