// Functions that translated kernels call instead of <<<>>> and __shared__ (lab/source). Only the
// translator writes these names.
#pragma once
#include <binade/kernels/host/checks.h>
#include <binade/kernels/host/cuda_runtime.h>
#include <binade/kernels/host/primitives.h>

// Marks the lab's own code, so that the race detector does not report its accesses as the kernel's.
#if defined(__has_attribute) && __has_attribute(no_sanitize_coverage)
#define BINADE_LAB_QUIET __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#else
#define BINADE_LAB_QUIET __attribute__((no_sanitize("thread")))
#endif

namespace binade::lab {

// One launch. with() takes the arguments between <<< and >>>.
class Launch {
 public:
  Launch(const char* kernel, const char* file, int line)
      : kernel_(kernel), file_(file), line_(line) {}

  Launch& with(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    grid_ = grid;
    block_ = block;
    shared_bytes_ = shared_bytes;
    static_cast<void>(stream);
    return *this;
  }
  // `call` calls the kernel. Each thread gets its own copy of the values.
  template <class F, class... Values>
  void run(F call, Values... values) {
    start(kernels::host::KernelThread([call, values...]() BINADE_LAB_QUIET {
      F own = call;
      own(values...);
    }));
  }

 private:
  void start(const kernels::host::KernelThread& thread) const;

  const char* kernel_;
  const char* file_;
  int line_;
  dim3 grid_{}, block_{};
  size_t shared_bytes_ = 0;
};

constexpr size_t larger(size_t a, size_t b) { return a < b ? b : a; }

// The address of this variable identifies one declaration of shared memory.
template <class T, size_t kAlignment, int kId>
inline char shared_key = 0;

template <class T, size_t kAlignment, int kId>
BINADE_LAB_QUIET T& static_shared(const char* name) {
  using Element = std::remove_all_extents_t<T>;
  return *static_cast<T*>(kernels::host::shared_variable(&shared_key<T, kAlignment, kId>, name,
                                                         sizeof(T), larger(alignof(T), kAlignment),
                                                         sizeof(Element)));
}
template <class T, size_t kAlignment>
BINADE_LAB_QUIET T* dynamic_shared(const char* name) {
  return static_cast<T*>(
      kernels::host::dynamic_shared(name, larger(alignof(T), kAlignment), sizeof(T)));
}

// Reads an argument of solve() through a pointer to it.
template <class T>
T argument(const void* value) {
  return *static_cast<const std::remove_cv_t<T>*>(value);
}

// Events that explain wrong results: at this line a finite value became infinite.
enum class NumberEvent : uint8_t { f16_overflow, bf16_overflow, exp_overflow };
[[gnu::noinline]] void note_number(NumberEvent event, float value, kernels::host::Site site);
[[gnu::noinline]] void note_number(NumberEvent event, float value);  // at the caller's line

[[noreturn]] void fail_assertion(const char* text, const char* file, int line);
[[noreturn]] void trap(kernels::host::Site site);

// Applies an atomic operation to `bytes` (2, 4 or 8) bytes: stores f(old, a, b), returns old.
using AtomicStep = uint64_t (*)(uint64_t old, uint64_t a, uint64_t b);
struct AtomicOperands {
  AtomicStep step;
  uint64_t a = 0, b = 0;
};
uint64_t atomic_apply(void* address, size_t bytes, const AtomicOperands& operands,
                      kernels::host::Site site);

}  // namespace binade::lab
