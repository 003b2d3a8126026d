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
  // Percent of the L1 cache of a multiprocessor that is used as shared memory, if it can choose.
  static constexpr int kDriversChoice = -1;
  static constexpr int kBySharedBytes = -2;  // all, if a block uses much: as many blocks fit

  const char* name;  // of the kernel, as its source spells it
  dim3 grid;         // blocks; none of the three may be 0
  dim3 block;        // threads
  size_t shared_bytes = 0;
  dim3 cluster = {};  // blocks that run at the same time (sm_90 and later); it divides the grid
  // The kernel may start before the one ahead of it in the stream has ended (programmatic dependent
  // launch, sm_90 and later). It must call dev::wait_for_previous_kernel() before it touches memory
  // that the other one uses.
  bool overlaps_previous = false;
  int carveout = kBySharedBytes;
};

// The stream for the launch.
void* launch_stream();
// Loads the kernel at its first launch on the selected device, and sets the attributes that the
// launch needs. Works during the capture of a graph too, which would not allow the launch itself to
// load the kernel. Throws if the launch is impossible.
void prepare_launch(const Launch& config, const void* kernel);
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
  const auto* code = reinterpret_cast<const void*>(kernel);
  prepare_launch(config, code);
  finish_launch(host::enqueue_kernel({.name = config.name,
                                      .grid = config.grid,
                                      .block = config.block,
                                      .shared_bytes = config.shared_bytes,
                                      .stream = launch_stream(),
                                      .kernel = code,
                                      .cluster = config.cluster},
                                     bound(static_cast<P>(std::forward<A>(arguments))...)),
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
