// Kernels of the fake runtime: loading, attributes, launches.
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/runtime_state.h>

#include <cstring>

namespace binade::kernels::host {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostShared = 227 * 1024;
constexpr unsigned kPortableCluster = 8;

bool fits(const KernelLaunch& l) {
  const uint64_t threads = uint64_t{l.block.x} * l.block.y * l.block.z;
  return threads > 0 && threads <= kMostThreads && l.block.z <= 64 &&
         l.shared_bytes <= kMostShared && l.grid.x > 0 && l.grid.y > 0 && l.grid.z > 0 &&
         l.grid.x <= 0x7fffffffu && l.grid.y <= 65535 && l.grid.z <= 65535;
}

bool cluster_fits(const KernelLaunch& l) {
  const dim3 c = l.cluster;
  return c.x > 0 && c.y > 0 && c.z > 0 && uint64_t{c.x} * c.y * c.z <= kPortableCluster &&
         l.grid.x % c.x == 0 && l.grid.y % c.y == 0 && l.grid.z % c.z == 0;
}

// Makes the checks that depend on the kernel, and on whether `target` records a graph.
cudaError_t check_kernel(Runtime& r, const KernelLaunch& l, const CUstream_st& target) {
  if (!l.kernel) {
    return cudaSuccess;
  }
  KernelState& state = r.kernels[l.kernel];
  if (!state.loaded && target.capture) {
    target.capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  state.loaded = true;
  if (l.shared_bytes > static_cast<size_t>(state.shared_limit)) {
    return cudaErrorInvalidValue;
  }
  const uint64_t threads = uint64_t{l.block.x} * l.block.y * l.block.z;
  return threads > static_cast<uint64_t>(launch_bound(l.kernel)) ? cudaErrorLaunchOutOfResources
                                                                 : cudaSuccess;
}

}  // namespace

int launch_bound(const void* kernel) {
#if defined(__x86_64__)
  constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, kNop = 0x90;
  const auto* code = static_cast<const unsigned char*>(kernel);
  if (std::memcmp(code, kEndbr64, sizeof kEndbr64) == 0) {
    code += sizeof kEndbr64;
  }
  int warps = 0;
  while (warps < kMostThreads / 32 && code[warps] == kNop) {
    ++warps;
  }
  return warps > 0 ? warps * 32 : kMostThreads;
#else
  static_cast<void>(kernel);
  return kMostThreads;
#endif
}

KernelState kernel_state(const void* kernel) {
  std::lock_guard lock(runtime().mutex);
  return runtime().kernels[kernel];
}

int enqueue_kernel(const KernelLaunch& launch, std::function<void()> thread) {
  return call("cudaLaunchKernelExC", [&](Runtime& r) {
    if (!fits(launch)) {
      return cudaErrorInvalidConfiguration;
    }
    if (!cluster_fits(launch)) {
      return cudaErrorInvalidClusterSize;
    }
    CUstream_st* target = r.resolve(static_cast<cudaStream_t>(launch.stream));
    if (!target || target->device != thread_device()) {
      return cudaErrorInvalidResourceHandle;
    }
    if (target->capture && target->capture->invalid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    if (const cudaError_t error = check_kernel(r, launch, *target); error != cudaSuccess) {
      return error;
    }
    const Grid grid{launch.name, launch.grid, launch.block, launch.shared_bytes};
    auto run = [grid, thread = std::move(thread)]() mutable {
      run_grid(
          grid, [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &thread);
    };
    r.push(*target, {Work::kernel, std::move(run), nullptr});
    return r.sticky;  // of an immediate stream
  });
}

}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return call("cudaFuncGetAttributes", [&](Runtime& r) {
    KernelState& state = r.kernels[kernel];
    if (!state.loaded) {
      if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
        return error;
      }
      state.loaded = true;
    }
    *attributes = {.maxThreadsPerBlock = launch_bound(kernel),
                   .maxDynamicSharedSizeBytes = state.shared_limit,
                   .preferredShmemCarveout = state.carveout};
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Runtime& r) {
    KernelState& state = r.kernels[kernel];
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || value > kMostShared) {
          return cudaErrorInvalidValue;
        }
        state.shared_limit = value;
        return cudaSuccess;
      case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > 100) {
          return cudaErrorInvalidValue;
        }
        state.carveout = value;
        return cudaSuccess;
      case cudaFuncAttributeNonPortableClusterSizeAllowed: return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}
