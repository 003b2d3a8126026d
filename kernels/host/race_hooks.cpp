// The functions that -fsanitize=thread calls for every access of a kernel source. Only kernels are
// compiled with it, and the sanitizer's own runtime is not linked: this file replaces it.
#include <binade/kernels/host/race_shadow.h>

#if BINADE_HOST_RACE
#include <cstring>

// The compiler knows these names as built-ins of other types.
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"

namespace binade::kernels::host::race {
namespace {

inline void hook(const void* address, size_t bytes, Kind kind, const void* return_address,
                 size_t alignment = 1) {
  Executor* x = current_executor;
  if (x != nullptr && x->current >= 0 && !x->quiet) {
    // The return address lies after the call; one byte before it is still in the call's line.
    const void* instruction = static_cast<const char*>(return_address) - 1;
    current_thread(*x).last = instruction;
    count_step(*x);
    const Quiet quiet(*x);
    if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
      report_misaligned(*x, address, alignment, Place::of(instruction));
    }
    access_by_instruction(*x, {address, bytes, kind, x->current}, instruction);
  } else if ((x == nullptr || x->current < 0) && check_options().host_accesses) {
    access_by_host({address, bytes, kind, -1}, static_cast<const char*>(return_address) - 1);
  }
}

}  // namespace
}  // namespace binade::kernels::host::race

using binade::kernels::host::race::hook;
using binade::kernels::host::race::Kind;

extern "C" {
#define BINADE_HOOK(name, bytes, kind, alignment)                       \
  void __tsan_##name(void* p) {                                         \
    hook(p, bytes, Kind::kind, __builtin_return_address(0), alignment); \
  }
#define BINADE_HOOKS(bytes)                               \
  BINADE_HOOK(read##bytes, bytes, read, bytes)            \
  BINADE_HOOK(write##bytes, bytes, write, bytes)          \
  BINADE_HOOK(volatile_read##bytes, bytes, read, bytes)   \
  BINADE_HOOK(volatile_write##bytes, bytes, write, bytes) \
  BINADE_HOOK(unaligned_read##bytes, bytes, read, 1)      \
  BINADE_HOOK(unaligned_write##bytes, bytes, write, 1)    \
  BINADE_HOOK(read_write##bytes, bytes, write, bytes)     \
  BINADE_HOOK(unaligned_read_write##bytes, bytes, write, 1)
BINADE_HOOKS(1)
BINADE_HOOKS(2)
BINADE_HOOKS(4)
BINADE_HOOKS(8)
BINADE_HOOKS(16)

void __tsan_read_range(void* p, unsigned long bytes) {
  hook(p, bytes, Kind::read, __builtin_return_address(0));
}
void __tsan_write_range(void* p, unsigned long bytes) {
  hook(p, bytes, Kind::write, __builtin_return_address(0));
}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  hook(from, bytes, Kind::read, __builtin_return_address(0));
  hook(to, bytes, Kind::write, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  hook(from, bytes, Kind::read, __builtin_return_address(0));
  hook(to, bytes, Kind::write, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  hook(to, bytes, Kind::write, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Atomics of host code, such as the guards of static variables. Kernels have none: they use the
// primitives.
#define BINADE_ATOMICS(bits, T)                                                                   \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                        \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                                 \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  T __tsan_atomic##bits##_exchange(volatile T* p, T value, int) {                                 \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                               \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T value, int) {                                \
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                               \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T value, int) {                                \
    return __atomic_fetch_sub(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                               \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* old, T value, int, int) {  \
    return __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
BINADE_ATOMICS(8, unsigned char)
BINADE_ATOMICS(16, unsigned short)
BINADE_ATOMICS(32, unsigned)
BINADE_ATOMICS(64, unsigned long)
}

#endif
