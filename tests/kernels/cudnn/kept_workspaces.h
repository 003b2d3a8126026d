// Workspaces in device memory that are released only when a test ends: kernel tests have no caching
// allocator, and with deferred streams the work that uses a workspace runs after the call that
// allocated it.
#pragma once
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels {

inline std::vector<void*>& kept_workspaces() {
  static auto& blocks = *new std::vector<void*>;
  return blocks;
}

inline void keep_workspaces() {
  set_workspace_source({[](Device, size_t bytes) {
                          const RelaxedCapture relaxed;
                          void* block = nullptr;
                          cudaMalloc(&block, std::max<size_t>(bytes, 1));
                          kept_workspaces().push_back(block);
                          return block;
                        },
                        [](Device, void*, size_t) noexcept {}});
}

// REQUIRES: nothing is queued.
inline void free_workspaces() {
  for (void* block : kept_workspaces()) {
    cudaFree(block);
  }
  kept_workspaces().clear();
}

}  // namespace binade::kernels
#endif
