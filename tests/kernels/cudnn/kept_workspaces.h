// Workspaces that are released only when a test ends: kernel tests have no caching allocator, and
// with deferred streams the work that uses a workspace runs after the call that allocated it.
#pragma once
#include <binade/kernels/base/workspace.h>

#include <cstdlib>
#include <vector>

namespace binade::kernels {

inline std::vector<void*>& kept_workspaces() {
  static auto& blocks = *new std::vector<void*>;
  return blocks;
}

inline void keep_workspaces() {
  set_workspace_source({[](Device, size_t bytes) {
                          void* block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                          kept_workspaces().push_back(block);
                          return block;
                        },
                        [](Device, void*, size_t) noexcept {}});
}

// REQUIRES: nothing is queued.
inline void free_workspaces() {
  for (void* block : kept_workspaces()) {
    std::free(block);
  }
  kept_workspaces().clear();
}

}  // namespace binade::kernels
