// Lists the devices, for reports.
#pragma once
#include <binade/kernels/base/device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade {

struct DeviceInfo {
  Device device;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int64_t memory = 0, free = 0;  // bytes
  bool growable = false;         // memory segments can grow by the driver's virtual memory
};

struct DeviceReport {
  std::vector<DeviceInfo> devices;  // other than the CPU
  std::string reason;               // why there are none
  std::string toolkit, driver;      // versions of CUDA; "" if there is none
};
DeviceReport device_report();

// For the first line of a program: "cuda:0 (NVIDIA H100)" or "cpu". A build with CUDA adds why it
// uses the CPU: "cpu (no GPU: no NVIDIA driver is installed)".
std::string describe(Device device);

}  // namespace binade
