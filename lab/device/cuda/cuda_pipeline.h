// cuda_pipeline.h for kernels in the lab.
#pragma once
#include <binade/lab/device/prelude.h>

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
inline void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes,
                                    size_t zero_fill = 0, BINADE_SITE) {
  if (bytes == 16) {
    binade::kernels::host::copy_async(shared, global, static_cast<int>(bytes - zero_fill), site);
    return;
  }
  // Copies of 4 and 8 bytes finish at once: the executor tracks only copies of 16 bytes in flight.
  __builtin_memset(shared, 0, bytes);
  __builtin_memcpy(shared, global, bytes - zero_fill);
}
inline void __pipeline_commit() { binade::kernels::host::commit_async(); }
inline void __pipeline_wait_prior(unsigned pending) {
  binade::kernels::host::wait_async(static_cast<int>(pending));
}
// NOLINTEND(readability-identifier-naming)
