// Where host execution puts kernels: the current stream of the fake CUDA runtime.
#pragma once
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>
#include <functional>

namespace binade::kernels::host {

// Checks the launch as cudaLaunchKernelExC would and queues it on the current stream of the kernel
// call in progress. `thread` runs one thread of the kernel; it is copied into the queue.
void enqueue_kernel(const char* name, dim3 grid, dim3 block, size_t shared_bytes,
                    std::function<void()> thread);

}  // namespace binade::kernels::host
