// Fibers: stacks that one OS thread switches between. x86-64 has its own switch of a dozen
// instructions; other machines, and builds with BINADE_HOST_UCONTEXT, use <ucontext.h>, which is
// several times slower because it makes system calls.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>
#if !defined(__x86_64__) && !defined(BINADE_HOST_UCONTEXT)
#define BINADE_HOST_UCONTEXT 1
#endif
#if BINADE_HOST_UCONTEXT
#include <ucontext.h>
#endif
#if BINADE_HOST_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace binade::kernels::host {

struct Fiber {
  void* stack_pointer = nullptr;  // while it does not run
  char* stack = nullptr;          // lowest address
  size_t stack_size = 0;
  size_t stagger = 0;          // bytes by which the top of the stack is lowered
  void* fake_stack = nullptr;  // AddressSanitizer's, while it does not run
  bool started = false;
#if BINADE_HOST_UCONTEXT
  ucontext_t context;
#endif
};

#if !BINADE_HOST_UCONTEXT
// Saves the callee-saved registers and the stack pointer, and continues where `to` was saved.
extern "C" void binade_switch_stack(void** save, void* to);
#endif

// Continues in `to`; returns when something switches back to `from`. A fiber that is `leaving`
// never continues.
inline void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool leaving = false) {
#if BINADE_HOST_ASAN
  __sanitizer_start_switch_fiber(leaving ? nullptr : &from.fake_stack, to.stack, to.stack_size);
#endif
#if BINADE_HOST_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  binade_switch_stack(&from.stack_pointer, to.stack_pointer);
#endif
#if BINADE_HOST_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// A fiber's entry function must call this first.
inline void enter_fiber() {
#if BINADE_HOST_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

// The fiber that represents the OS thread itself.
Fiber fiber_of_os_thread();

// Stacks for `count` fibers, with a guard page below each. Memory is used as stacks are touched.
class FiberPool {
 public:
  FiberPool(int count, void (*entry)());
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // A fiber that starts at entry() or, if it was used before, continues where put() was called.
  Fiber* take();
  void put(Fiber* fiber) { free_.push_back(fiber); }
  // After an error: forgets whatever runs on the fibers, without destructors.
  void abandon_all();

  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - memory_) < bytes_;
  }

 private:
  void start(Fiber& fiber) const;

  char* memory_;
  size_t bytes_;
  void (*entry_)();
  std::vector<std::unique_ptr<Fiber>> fibers_;  // created so far, lowest stack first
  std::vector<Fiber*> free_;
};

}  // namespace binade::kernels::host
