#include <binade/kernels/base/error.h>
#include <binade/kernels/host/fiber.h>
#include <binade/kernels/host/sanitizer.h>

#include <pthread.h>
#include <sys/mman.h>

#if !BINADE_HOST_UCONTEXT
asm(R"(.text
.globl binade_switch_stack
.type binade_switch_stack,@function
binade_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size binade_switch_stack, .-binade_switch_stack
)");
#endif

namespace binade::kernels::host {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kStack = 256 * 1024;  // the largest frames of kernels, at -O0, take a few KiB
constexpr size_t kSlot = kGuard + kStack;

}  // namespace

Fiber fiber_of_os_thread() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  Fiber fiber;
  fiber.stack = static_cast<char*>(low);
  fiber.stack_size = size;
  fiber.started = true;
  return fiber;
}

FiberPool::FiberPool(int count, void (*entry)())
    : bytes_(static_cast<size_t>(count) * kSlot), entry_(entry) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  check(memory != MAP_FAILED, "host execution: no address space for the stacks of ", count,
        " threads");
  memory_ = static_cast<char*>(memory);
}

FiberPool::~FiberPool() {
  unpoison(memory_, bytes_);
  munmap(memory_, bytes_);
}

Fiber* FiberPool::take() {
  if (free_.empty()) {
    const size_t index = fibers_.size();
    char* slot = memory_ + index * kSlot;
    mprotect(slot, kGuard, PROT_NONE);
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = slot + kGuard;
    fiber->stack_size = kStack;
    // Otherwise equal frames at equal offsets of a page would all use the same few cache sets.
    fiber->stagger = index * 576 % 4096;
    free_.push_back(fiber.get());
    fibers_.push_back(std::move(fiber));
  }
  Fiber* fiber = free_.back();
  free_.pop_back();
  if (!fiber->started) {
    start(*fiber);
  }
  return fiber;
}

void FiberPool::start(Fiber& fiber) const {
  fiber.started = true;
  fiber.fake_stack = nullptr;
  unpoison(fiber.stack, fiber.stack_size);
#if BINADE_HOST_UCONTEXT
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = fiber.stack_size - fiber.stagger;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry_, 0);
#else
  // The stack as binade_switch_stack leaves it: six registers, then the return address. Above it a
  // null return address, where debuggers and unwinders stop.
  constexpr int kRegisters = 6;
  void** top = reinterpret_cast<void**>(fiber.stack + fiber.stack_size - fiber.stagger);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry_);
  for (int i = 0; i < kRegisters; ++i) {
    *--top = nullptr;
  }
  fiber.stack_pointer = top;
#endif
}

void FiberPool::abandon_all() {
  free_.clear();
  for (auto fiber = fibers_.rbegin(); fiber != fibers_.rend(); ++fiber) {
    (*fiber)->started = false;
    free_.push_back(fiber->get());
  }
}

}  // namespace binade::kernels::host
