// Kernels report values that are out of range (fault.h).
#pragma once
#include <binade/kernels/cuda/fault.h>
#include <binade/kernels/cuda/device.cuh>

namespace binade::kernels::dev {

// What this thread has written is visible to the host before what it writes next.
__device__ __forceinline__ void fence_for_host() {
#ifdef BINADE_HOST_EXECUTION
  __threadfence();
#else
  __threadfence_system();
#endif
}

__device__ __forceinline__ void report_fault(const FaultSite& site, int64_t value, int64_t bound) {
  if (atomicCAS(&site.report->state, 0u, 1u) == 0u) {
    site.report->op = site.op;
    site.report->what = site.what;
    site.report->value = value;
    site.report->bound = bound;
    fence_for_host();
    atomicCAS(&site.report->state, 1u, 2u);
  }
}

// Whether value is 0 to bound - 1; reports it otherwise.
__device__ __forceinline__ bool in_range(const FaultSite& site, int64_t value, int64_t bound) {
  const bool good = static_cast<uint64_t>(value) < static_cast<uint64_t>(bound);
  if (!good) {
    report_fault(site, value, bound);
  }
  return good;
}

}  // namespace binade::kernels::dev
