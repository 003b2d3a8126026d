// The AddressSanitizer interface for files that are not instrumented themselves: in those the
// macros of <sanitizer/asan_interface.h> do nothing.
#pragma once
#include <cstddef>
#if BINADE_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace binade::kernels::host {

inline void poison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#if BINADE_HOST_ASAN
  __asan_poison_memory_region(p, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#if BINADE_HOST_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
}

}  // namespace binade::kernels::host
