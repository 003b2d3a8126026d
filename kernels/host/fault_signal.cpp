// A fault of a kernel continues in land_fault(), on the stack of the kernel's fiber, which nothing
// else needs any more. There it becomes an error like any other.
#include <binade/kernels/host/fault_signal.h>
#include <binade/kernels/host/findings_internal.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !BINADE_HOST_ASAN
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <memory>
#include <mutex>

namespace binade::kernels::host {
namespace {

struct FaultOfKernel {
  int signal;
  bool has_address;  // the processor says it
  const char* address;
  const void* instruction;
  bool write;
};
thread_local FaultOfKernel fault_of_kernel;
constexpr int kFaultSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
struct sigaction fault_handlers_before[std::size(kFaultSignals)];

constexpr uintptr_t kFirstPage = 4096;

[[noreturn]] void end_with_fault(Executor& x, const FaultOfKernel& fault) {
  FindingKind kind = FindingKind::out_of_bounds;
  const char* what = "access out of bounds";
  FoundElement element;
  if (fault.signal == SIGVTALRM) {
    kind = FindingKind::step_limit;
    what = "no end of a loop without a step";
  } else if (fault.signal == SIGFPE) {
    kind = FindingKind::undefined_math;
    what = "division by zero, or of the smallest number by -1";
  } else if (!fault.has_address) {
    kind = FindingKind::misaligned;
    what = "vector access at an address that is not aligned, or no address at all";
  } else if (reinterpret_cast<uintptr_t>(fault.address) < kFirstPage) {
    what = "access by a null pointer";
  } else if (x.fibers.contains(fault.address)) {
    what = "more local variables than the stack of a thread holds, or recursion without end";
    element.space = MemorySpace::local;
  } else {
    element = element_of(x, fault.address, true);
  }
  Finding finding = finding_here(x, kind, {}, fault.write ? Act::write : Act::read);
  finding.first.line = line_of_instruction(fault.instruction);
  finding.message = text(where_of(x), what);
  if (!element.array.empty()) {
    finding.message += text(": ", fault.write ? "writes " : "reads ", element);
  }
  finding.message += text(" at ", finding.first.line);
  finding.element = std::move(element);
  const FindingKey key{kind, reinterpret_cast<uint64_t>(fault.instruction), 0, nullptr};
  die_with(x, *current_thread(x).fiber, key, std::move(finding));
}

[[noreturn]] void land_fault() {
  executor().quiet = true;
  end_with_fault(executor(), fault_of_kernel);
}

// Values of which one changes unless the kernel runs an empty loop.
struct Activity {
  uint64_t launch, block;
  int current, live;
  uint32_t steps_left;
  bool operator==(const Activity&) const = default;
};
constexpr int kIdleTicks = 8;  // of the timer
thread_local Activity last_activity;
thread_local int idle_ticks;

bool is_idle(const Executor& x) {
  const Activity now{x.launch, x.block, x.current, x.live, x.steps_left};
  idle_ticks = now == last_activity ? idle_ticks + 1 : 0;
  last_activity = now;
  return idle_ticks >= kIdleTicks;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Executor* x = current_executor;
  if (signal == SIGVTALRM && (x == nullptr || x->current < 0 || !is_idle(*x))) {
    return;
  }
  if (x == nullptr || x->current < 0) {
    for (size_t i = 0; i < std::size(kFaultSignals); ++i) {
      if (kFaultSignals[i] == signal) {  // the instruction runs again, under the handler of before
        sigaction(signal, &fault_handlers_before[i], nullptr);
      }
    }
    return;
  }
  const Fiber& fiber = *current_thread(*x).fiber;
  const auto top = reinterpret_cast<uintptr_t>(fiber.stack) + fiber.stack_size - fiber.stagger;
  constexpr uintptr_t kBelowTop = 256;
  const uintptr_t stack = (top - kBelowTop) / 16 * 16;
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  FaultOfKernel& fault = fault_of_kernel;
  fault.signal = signal;
  fault.has_address = signal != SIGVTALRM && info->si_code != SI_KERNEL;
  fault.address = fault.has_address ? static_cast<const char*>(info->si_addr) : nullptr;
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // a bit of the error code of page faults
  fault.write = (signal == SIGSEGV || signal == SIGBUS) && (machine.gregs[REG_ERR] & kWrite) != 0;
  fault.instruction = reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
  machine.gregs[REG_RIP] = reinterpret_cast<greg_t>(&land_fault);
  machine.gregs[REG_RSP] = static_cast<greg_t>(stack - 8);  // as after a call
#else
  fault.write = false;  // not known
  fault.instruction = reinterpret_cast<const void*>(machine.pc);
  machine.pc = reinterpret_cast<uintptr_t>(&land_fault);
  machine.sp = stack;
#endif
}

}  // namespace

void catch_fault_signals() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kFaultSignals); ++i) {
      sigaction(kFaultSignals[i], &action, &fault_handlers_before[i]);
    }
  });
  // A stack of its own for the handler, because that of a fiber may be full.
  constexpr size_t kHandlerStack = 64 * 1024;
  static thread_local std::unique_ptr<char[]> stack;
  if (stack == nullptr) {
    stack = std::make_unique<char[]>(kHandlerStack);
    stack_t handler_stack = {};
    handler_stack.ss_sp = stack.get();
    handler_stack.ss_size = kHandlerStack;
    sigaltstack(&handler_stack, nullptr);
  }
}

void end_idle_loops_after(double seconds) {
  const auto tick = static_cast<suseconds_t>(seconds * 1e6 / kIdleTicks);
  itimerval timer = {};
  timer.it_interval.tv_sec = tick / 1000000;
  timer.it_interval.tv_usec = tick % 1000000;
  timer.it_value = timer.it_interval;
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

}  // namespace binade::kernels::host

#else

void binade::kernels::host::catch_fault_signals() {}
void binade::kernels::host::end_idle_loops_after(double) {}

#endif
