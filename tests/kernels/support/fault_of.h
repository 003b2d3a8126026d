// The error of an index that a kernel does not accept, on either backend.
#pragma once
#include <binade/kernels/base/fault.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/fault.h>
#endif

#include <functional>
#include <string>

#include "tests/kernels/support/test_device.h"

namespace binade::kernels {

// "OP VALUE: MESSAGE", or nothing. On a device the result is defined, and core's next
// synchronisation reports the fault.
inline std::string fault_of(const std::function<void()>& run) {
  try {
    run();
#ifdef BINADE_WITH_CUDA
    if (!test_device().is_cpu()) {
      throw_reported_fault(test_device());
    }
#endif
  } catch (const IndexError& error) {
    return text(error.op(), " ", error.value(), ": ", error.what());
  }
  return "";
}

}  // namespace binade::kernels
