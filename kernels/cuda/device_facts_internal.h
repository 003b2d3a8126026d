// Properties of the device that the choice of a kernel depends on.
#pragma once
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

namespace binade::kernels {

struct DeviceFacts {
  int processors = 0, capability = 0;  // multiprocessors; 80 is sm_80

  // True if mma.sync takes this dtype.
  bool tensor_cores(DType dtype) const {
    return dtype == DType::f16 ? capability >= 75 : dtype == DType::bf16 && capability >= 80;
  }
};

inline DeviceFacts device_facts(Device device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, device.index), "cudaDeviceGetAttribute");
    return value;
  };
  return {attribute(cudaDevAttrMultiProcessorCount),
          attribute(cudaDevAttrComputeCapabilityMajor) * 10 +
              attribute(cudaDevAttrComputeCapabilityMinor)};
}

}  // namespace binade::kernels
