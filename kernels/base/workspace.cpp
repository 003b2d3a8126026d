#include <binade/kernels/base/error.h>
#include <binade/kernels/base/workspace.h>
#if defined(BINADE_WITH_CUDA) && !defined(BINADE_HOST_EXECUTION)
#include <binade/kernels/cuda/workspace_internal.h>
#endif

#include <cstdlib>

namespace binade::kernels {
namespace {

constexpr size_t kAlignment = 64;

// The emulated device uses host memory.
#if defined(BINADE_WITH_CUDA) && !defined(BINADE_HOST_EXECUTION)
bool is_on_gpu(Device device) { return !device.is_cpu(); }
#else
constexpr bool is_on_gpu(Device) { return false; }
void* allocate_device_workspace(Device, size_t) { return nullptr; }
void release_device_workspace(Device, void*) {}
#endif

void* allocate_alone(Device device, size_t bytes) {
  if (is_on_gpu(device)) {
    return allocate_device_workspace(device, bytes);
  }
  void* block = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!block) {
    throw OutOfMemory(text("workspace: could not allocate ", bytes, " bytes"));
  }
  return block;
}

void release_alone(Device device, void* block, size_t) noexcept {
  is_on_gpu(device) ? release_device_workspace(device, block) : std::free(block);
}

WorkspaceSource source{allocate_alone, release_alone};

}  // namespace

void set_workspace_source(WorkspaceSource replacement) { source = replacement; }

Workspace::Workspace(size_t bytes, Device device)
    : block_(bytes ? source.allocate(device, bytes) : nullptr), bytes_(bytes), device_(device) {}

Workspace::~Workspace() {
  if (block_) {
    source.release(device_, block_, bytes_);
  }
}

}  // namespace binade::kernels
