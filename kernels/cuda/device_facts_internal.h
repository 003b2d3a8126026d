// Properties of the device that the choice of a kernel depends on. The runtime is asked once per
// device.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/kernels/base/dtype.h>

#include <string>

namespace binade::kernels {

struct DeviceFacts {
  int processors = 0, capability = 0;  // multiprocessors; 80 is sm_80
  std::string name;                    // of the card

  // True if mma.sync takes this dtype.
  bool tensor_cores(DType dtype) const {
    return dtype == DType::f16 ? capability >= 75 : dtype == DType::bf16 && capability >= 80;
  }
};

const DeviceFacts& device_facts(Device device);

}  // namespace binade::kernels
