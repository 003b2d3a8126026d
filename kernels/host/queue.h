// The fake CUDA runtime of host execution (host/cuda_runtime.h): how its streams run, which faults
// it injects, and how kernels are queued.
//
// Differences from a GPU:
//  - Device memory is host memory, filled with 0xFF (NaN) when allocated and when freed.
//  - Work runs on the host. Immediate streams run it when it is queued. Deferred streams run it
//    only when the host waits for it, in an order that respects nothing but stream order and
//    events: work that lacks an event sees memory too early, and a buffer reused too early has
//    changed by then.
//  - Every stream behaves as if created with cudaStreamNonBlocking, the null stream too.
//  - A kernel that breaks a rule throws its KernelError out of the call that runs it: the launch,
//    or with deferred streams the call that waits.
//  - Copies between pageable memory and the device cannot be captured into graphs. On deferred
//    streams they do not wait: CUDA promises only that they might.
//  - A kernel that was never loaded cannot be launched into a graph: with lazy loading, its first
//    launch loads it.
//  - Clusters run block after block, and kernels never overlap.
#pragma once
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace binade::kernels::host {

struct StreamOptions {
  bool deferred = false;
  // Selects the work that a deferred wait runs. 0: only the awaited work and its dependencies; 1:
  // all other streams first; else a random mix from this seed.
  uint64_t seed = 0;
  int devices = 1;                  // read by the first call of the runtime
  size_t memory = size_t{4} << 30;  // of each device
  bool virtual_memory = true;       // whether the driver has cuMemAddressReserve etc.
};
// Initialised at first use from BINADE_HOST_STREAMS (immediate, deferred), BINADE_HOST_STREAM_SEED,
// BINADE_HOST_DEVICES and BINADE_HOST_MEMORY (bytes). Change it only while nothing is queued.
StreamOptions& stream_options();

// Makes the k-th call of `call` from now (1 is the next) return `code`; "" counts every call,
// "kernel" the execution of kernels. Codes of faults that end a CUDA context (700 etc.) are sticky:
// every call returns them until reset_faults().
struct InjectedFault {
  int code = 0;  // cudaError_t; 0 for none
  int64_t k = 1;
  std::string call;
  bool stays = false;  // later calls fail, too, as with a driver that passes only a first probe
};
void inject_fault(const InjectedFault& fault);
void reset_faults();  // clears injected and sticky faults; drops queued work after a sticky one

struct RuntimeCounts {
  int64_t calls = 0;               // of the runtime, without error names and getters
  int64_t kernels = 0;             // executed
  int64_t device_allocations = 0;  // cudaMalloc, and cuMemCreate
  int64_t device_frees = 0;
  int64_t pinned_allocations = 0;
  int64_t events = 0;       // recorded
  int64_t waits = 0;        // calls that made the host wait
  int64_t queries = 0;      // of properties and attributes of devices
  size_t device_bytes = 0;  // live now, of all devices
  size_t pinned_bytes = 0;
};
RuntimeCounts runtime_counts();

struct KernelLaunch {
  const char* name;  // for errors
  dim3 grid, block;
  size_t shared_bytes = 0;
  void* stream = nullptr;
  const void* kernel = nullptr;  // the function; null skips what is known about it
  dim3 cluster = {};
};
// Checks a launch as cudaLaunchKernelExC would and queues it; returns a cudaError_t. `thread` runs
// one thread of the kernel; it is copied into the queue.
int enqueue_kernel(const KernelLaunch& launch, std::function<void()> thread);

// The most threads of a block by the kernel's __launch_bounds__, rounded up to whole warps; 1024
// for a kernel without, and with compilers other than g++.
int launch_bound(const void* kernel);

// The state of a kernel in the runtime.
struct KernelState {
  bool loaded = false;  // by its first launch, or by cudaFuncGetAttributes
  int shared_limit = 48 * 1024, carveout = -1;
};
KernelState kernel_state(const void* kernel);

}  // namespace binade::kernels::host
