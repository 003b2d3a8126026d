// The report of a bad value that a kernel found on a device (kernels/base/fault.h). Each device has
// one, in pinned memory, which kernels write and the host reads without a copy. The first report
// stays until it is thrown.
#pragma once
#include <binade/kernels/base/fault.h>

namespace binade::kernels {

struct FaultReport {
  unsigned state;  // 0: none, 1: being written, 2: complete
  const char* op;
  const char* what;
  bool real;             // a floating value: `number` was outside [0, bound]
  int64_t value, bound;  // an index: `value` was outside 0 .. bound - 1
  double number;
};

// Passed to a kernel that may report: the report, and the names to put into it.
struct FaultSite {
  FaultReport* report;
  const char* op;
  const char* what;
};

// The names must be literals: they are read after the call has returned.
FaultSite fault_site(Device device, const char* op, const char* what);

// Throws the IndexError or ValueError that the device has reported, if any, and clears it. The host
// calls it after it has waited for the device.
void throw_reported_fault(Device device);

}  // namespace binade::kernels
