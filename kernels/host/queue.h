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
//  - Copies between pageable memory and the device cannot be captured into graphs.
#pragma once
#include <binade/kernels/host/cuda_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace binade::kernels::host {

struct StreamOptions {
  bool deferred = false;
  // Which work a deferred wait runs. 0: only what is waited for and its dependencies; 1: all other
  // streams first; else a random mix from this seed.
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
struct Fault {
  int code = 0;  // cudaError_t; 0 for none
  int64_t k = 1;
  std::string call;
};
void inject_fault(const Fault& fault);
void reset_faults();  // clears injected and sticky faults; drops queued work after a sticky one

struct RuntimeCounts {
  int64_t calls = 0;               // of the runtime, without error names and getters
  int64_t kernels = 0;             // executed
  int64_t device_allocations = 0;  // cudaMalloc, and cuMemCreate
  int64_t device_frees = 0;
  int64_t pinned_allocations = 0;
  int64_t waits = 0;        // calls that made the host wait
  size_t device_bytes = 0;  // live now, of all devices
  size_t pinned_bytes = 0;
};
RuntimeCounts runtime_counts();

// Checks a launch as cudaLaunchKernelExC would and queues it on `stream`; returns a cudaError_t.
// `thread` runs one thread of the kernel; it is copied into the queue.
int enqueue_kernel(const char* name, dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                   std::function<void()> thread);

}  // namespace binade::kernels::host
