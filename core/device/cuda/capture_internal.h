// Checks of graph capture for other calls of the runtime.
#pragma once
#include <binade/kernels/base/device.h>

namespace binade {

// Throws an error that names `what` if this thread captures a graph on `device` and `host` is not
// pinned memory: such a call would have to wait for work that does not run yet.
void check_not_capturing(Device device, const char* what, const void* host);

bool is_pinned(const void* host);

}  // namespace binade
