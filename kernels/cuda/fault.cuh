// Kernels report values that are out of range (fault.h).
#pragma once
#include <binade/kernels/cuda/fault.h>
#include <binade/kernels/cuda/device.cuh>

namespace binade::kernels::dev {

// Makes earlier writes of this thread visible to the host before its later writes.
__device__ __forceinline__ void fence_for_host() {
#ifdef BINADE_HOST_EXECUTION
  __threadfence();
#else
  __threadfence_system();
#endif
}

// Calls f(report) to fill in the report, unless there is one already.
template <class F>
__device__ __forceinline__ void report(const FaultSite& site, const F& f) {
  if (atomicCAS(&site.report->state, 0u, 1u) == 0u) {
    site.report->op = site.op;
    site.report->what = site.what;
    f(*site.report);
    fence_for_host();
    atomicCAS(&site.report->state, 1u, 2u);
  }
}

__device__ __forceinline__ void report_fault(const FaultSite& site, int64_t value, int64_t bound) {
  report(site, [=](FaultReport& r) {
    r.real = false;
    r.value = value;
    r.bound = bound;
  });
}

// Reports a number outside [0, bound].
__device__ __forceinline__ void report_number(const FaultSite& site, double number, int64_t bound) {
  report(site, [=](FaultReport& r) {
    r.real = true;
    r.number = number;
    r.bound = bound;
  });
}

// True if value is in 0 .. bound - 1; reports it otherwise.
__device__ __forceinline__ bool in_range(const FaultSite& site, int64_t value, int64_t bound) {
  const bool good = static_cast<uint64_t>(value) < static_cast<uint64_t>(bound);
  if (!good) {
    report_fault(site, value, bound);
  }
  return good;
}

}  // namespace binade::kernels::dev
