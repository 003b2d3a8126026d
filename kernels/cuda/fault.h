// The report of a bad value that kernels of a device found (kernels/base/fault.h). One per device,
// in pinned memory, which kernels write and the host reads without a copy; the first report stays
// until it is thrown.
#pragma once
#include <binade/kernels/base/fault.h>

namespace binade::kernels {

struct FaultReport {
  unsigned state;  // 0: none, 1: somebody writes it, 2: complete
  const char* op;
  const char* what;
  bool real;             // not an index: `number` was outside [0, bound]
  int64_t value, bound;  // else `value` was not in 0 to bound - 1
  double number;
};

// What a kernel takes along to report: the report, and the names to put in.
struct FaultSite {
  FaultReport* report;
  const char* op;
  const char* what;
};

// The names are literals: they are read when nobody knows the call any more.
FaultSite fault_site(Device device, const char* op, const char* what);

// Throws the IndexError or ValueError that the device has reported, if any, and forgets it. For the
// host, after it has waited.
void throw_reported_fault(Device device);

}  // namespace binade::kernels
