// The step limit: ends threads that would run for ever, and lets the other threads of a block have
// a turn while one of them polls memory.
#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/findings_internal.h>

namespace binade::kernels::host {
namespace {

// A block makes no progress if no thread ends or passes a barrier or collective in so many times
// the limit of one thread. A smaller factor would end blocks that work long without a barrier.
constexpr uint64_t kStalledLimits = 16;

// The next thread that can run in the order of their numbers, so that each one has its turn; -1 if
// there is no other.
int next_in_turn(const Executor& x) {
  for (int i = 1; i < x.thread_count; ++i) {
    const int thread = (x.current + i) % x.thread_count;
    if ((x.warps[static_cast<size_t>(thread / 32)].ready >> thread % 32 & 1) != 0) {
      return thread;
    }
  }
  return -1;
}

// Lets another thread run; returns at once if no other can.
void yield_thread(Executor& x) {
  Thread& self = current_thread(x);
  int next = next_in_turn(x);
  if (next < 0 && !x.parked.empty()) {
    next = x.parked.back();
    x.parked.pop_back();
    set_ready(x, next);
  }
  if (next < 0) {
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

int threads_in(const Executor& x, ThreadState state) {
  return static_cast<int>(
      std::count_if(x.threads.begin(), x.threads.begin() + x.thread_count,
                    [&](const Thread& thread) { return thread.state == state; }));
}

[[noreturn, gnu::cold]] void end_endless_thread(Executor& x) {
  x.quiet = true;
  const Thread& self = current_thread(x);
  Finding finding = finding_here(x, FindingKind::step_limit, {}, Act::run);
  // A loop that polls comes to its atomic again within few steps.
  constexpr uint64_t kLoopSteps = 256;
  const bool polls = self.polled.line > 0 && self.polled_steps + kLoopSteps >= self.steps;
  finding.first.line = polls ? line_of(self.polled) : line_of_instruction(self.last);
  finding.message = where_of(x);
  finding.message += text("no end after ", x.checks.step_limit, " steps, at ", finding.first.line);
  if (x.last_address != nullptr) {
    finding.element = element_of(x, x.last_address, false);
    if (!finding.element.array.empty()) {
      finding.message += text("; it last touched ", finding.element);
    }
  }
  const int waiting =
      threads_in(x, ThreadState::at_barrier) + threads_in(x, ThreadState::at_collective);
  finding.message += text(" (", waiting, " threads of the block wait, ", x.exited, " ended)");
  const FindingKey key{FindingKind::step_limit, reinterpret_cast<uint64_t>(self.last), 0, nullptr};
  die_with(x, *self.fiber, key, std::move(finding));
}

}  // namespace

void look_at_steps(Executor& x) {
  x.steps_left = kStepsAtOnce;
  if (x.checks.step_limit == 0) {
    return;
  }
  Thread& self = current_thread(x);
  self.steps += kStepsAtOnce;
  x.stalled_steps += kStepsAtOnce;
  if (self.steps >= x.checks.step_limit ||
      x.stalled_steps >= kStalledLimits * x.checks.step_limit) {
    end_endless_thread(x);
  }
  yield_thread(x);
}

}  // namespace binade::kernels::host

// Code compiled with -fsanitize-coverage=trace-pc calls this at every basic block.
extern "C" void __sanitizer_cov_trace_pc() {
  using namespace binade::kernels::host;  // NOLINT: the names of one function
  Executor* x = current_executor;
  if (x != nullptr && x->current >= 0 && !x->quiet) {
    // The return address lies after the call; one byte before it is still in the call's line.
    const void* instruction = static_cast<const char*>(__builtin_return_address(0)) - 1;
    current_thread(*x).last = instruction;
#if BINADE_HOST_RACE
    if (x->options.count_accesses) {
      const Quiet quiet(*x);
      count::basic_block(*x, Place::of(instruction));
    }
#endif
    count_step(*x);
  }
}
