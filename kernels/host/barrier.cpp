// __syncthreads() and named barriers.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

namespace binade::kernels::host {
namespace {

// A thread in this state, and if `id` is not -1 at barrier `id`; -1 if there is none.
int thread_in(const Executor& x, ThreadState state, int id = -1) {
  for (int i = 0; i < x.thread_count; ++i) {
    const Thread& thread = x.threads[static_cast<size_t>(i)];
    if (thread.state == state && (id < 0 || thread.barrier == id)) {
      return i;
    }
  }
  return -1;
}

void check_arrival(const Executor& x, const Barrier& barrier, int id, int expected, Site site) {
  if (id == 0 && x.exited > 0) {
    fail_thread({FindingKind::barrier_divergence, site, thread_in(x, ThreadState::done)},
                "__syncthreads at ", site, " after ", x.exited, " threads of the block ended");
  }
  if (barrier.arrived == 0) {
    return;
  }
  if (barrier.expected != expected) {
    const int waiter = thread_in(x, ThreadState::at_barrier, id);
    fail_thread({FindingKind::barrier_divergence, site, waiter}, "barrier ", id, " for ", expected,
                " threads at ", site, ", but others wait for ", barrier.expected, " at ",
                barrier.site);
  }
  if (!same_call(barrier.site, site)) {
    const int waiter = thread_in(x, ThreadState::at_barrier, id);
    fail_thread({FindingKind::barrier_divergence, site, waiter},
                "divergent barrier: this thread is at ", site, ", others wait at ", barrier.site,
                other_path(barrier.site, site));
  }
}

}  // namespace

void barrier(int id, int count, Site site) {
  Executor& x = executor();
  Thread& self = current_thread(x);
  site.path = call_path(x, __builtin_frame_address(0));
  // A count above the block's size includes lanes that its last warp does not have.
  const int expected = id == 0 ? x.thread_count : std::min(count, x.thread_count);
  self.what = id == 0 ? "__syncthreads" : "named_barrier";
  self.site = site;
  if (id < 0 || id >= kBarriers) {
    fail_thread({FindingKind::bad_argument, site}, "barrier ", id, " at ", site,
                "; a block has barriers 0 to 15");
  }
  if (id != 0 && (count <= 0 || count % 32 != 0 || count > (x.thread_count + 31) / 32 * 32)) {
    fail_thread({FindingKind::bad_argument, site}, "barrier ", id, " for ", count, " threads at ",
                site, "; expected a multiple of 32 up to the ", x.thread_count, " of the block");
  }
  Barrier& barrier = x.barriers[static_cast<size_t>(id)];
  check_arrival(x, barrier, id, expected, site);
  barrier.expected = expected;
  barrier.site = site;
  if (++barrier.arrived < expected) {
    self.state = ThreadState::at_barrier;
    self.barrier = static_cast<uint8_t>(id);
    wait_until_ready(x);
    return;
  }
  barrier.arrived = 0;
  x.stalled_steps = 0;
  race::join_barrier(x, id);
  race::count_together(x, self.what, site, expected);
  self.barriers += id == 0;
  for (int i = 0; i < x.thread_count; ++i) {
    Thread& thread = x.threads[static_cast<size_t>(i)];
    if (thread.state == ThreadState::at_barrier && thread.barrier == id) {
      thread.barriers += id == 0;
      set_ready(x, i);
    }
  }
}

}  // namespace binade::kernels::host
