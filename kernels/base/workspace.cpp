#include <binade/kernels/base/error.h>
#include <binade/kernels/base/workspace.h>

#include <cstdlib>

namespace binade::kernels {
namespace {

constexpr size_t kAlignment = 64;

WorkspaceSource source{
    [](Device, size_t bytes) -> void* {
      void* block =
          std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
      if (!block) {
        throw OutOfMemory(text("workspace: could not allocate ", bytes, " bytes"));
      }
      return block;
    },
    [](Device, void* block, size_t) noexcept { std::free(block); }};

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
