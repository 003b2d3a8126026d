// launch(): starts a kernel on the current stream of the device of the kernel call in progress
// (cuda/kernel_call.h), and turns a refused launch into a CudaError that describes the launch. With
// BINADE_SYNC=1 in the environment it waits for every kernel, so that an error names its own
// kernel.
#pragma once
#include <binade/kernels/cuda/kernel_call.h>
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/queue.h>
#else
#include <cuda_runtime.h>
#endif

#include <utility>

namespace binade::kernels {

struct Launch {
  const char* name;  // of the kernel, as its source spells it
  dim3 grid;         // blocks; none of the three may be 0
  dim3 block;        // threads
  size_t shared_bytes = 0;
};

// The stream for the launch.
void* launch_stream();
// Throws if `status`, a cudaError_t, says that the launch was refused.
void finish_launch(int status, const char* name, const unsigned grid[3], const unsigned block[3],
                   size_t shared_bytes);
inline void finish_launch(int status, const Launch& config) {
  const unsigned grid[] = {config.grid.x, config.grid.y, config.grid.z};
  const unsigned block[] = {config.block.x, config.block.y, config.block.z};
  finish_launch(status, config.name, grid, block, config.shared_bytes);
}

#ifdef BINADE_HOST_EXECUTION

template <class... P, class... A>
void launch(const Launch& config, void (*kernel)(P...), A&&... arguments) {
  // The closure copies the arguments: as on a GPU, the caller's may be gone when the kernel runs.
  auto bound = [kernel](P... values) { return [=] { kernel(values...); }; };
  finish_launch(
      host::enqueue_kernel(config.name, config.grid, config.block, config.shared_bytes,
                           launch_stream(), bound(static_cast<P>(std::forward<A>(arguments))...)),
      config);
}

#else

void launch_kernel(const Launch& config, const void* kernel, void** arguments);

template <class... P, class... A>
void launch(const Launch& config, void (*kernel)(P...), A&&... arguments) {
  auto start = [&](P... values) {
    void* addresses[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
    launch_kernel(config, reinterpret_cast<const void*>(kernel), addresses);
  };
  start(static_cast<P>(std::forward<A>(arguments))...);
}

#endif

}  // namespace binade::kernels
