// Scratch memory for one kernel call, 64-byte aligned and uninitialised. It comes from the caching
// allocator once core has installed it; kernels used without core call malloc, or on a GPU the
// driver's pool.
#pragma once
#include <binade/kernels/base/device.h>

#include <cstddef>

namespace binade::kernels {

struct WorkspaceSource {
  void* (*allocate)(Device device, size_t bytes);
  void (*release)(Device device, void* block, size_t bytes) noexcept;
};
void set_workspace_source(WorkspaceSource source);

class Workspace {
 public:
  explicit Workspace(size_t bytes, Device device = {});
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(block_);
  }

 private:
  void* block_;
  size_t bytes_;
  Device device_;
};

}  // namespace binade::kernels
