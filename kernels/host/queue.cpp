#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/queue.h>

namespace binade::kernels::host {

void enqueue_kernel(const char*, dim3 grid, dim3 block, size_t shared_bytes,
                    std::function<void()> thread) {
  run_grid(
      grid, block, shared_bytes, [](void* f) { (*static_cast<std::function<void()>*>(f))(); },
      &thread);
}

}  // namespace binade::kernels::host
