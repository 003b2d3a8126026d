#include <binade/core/device/device_info.h>
#include <binade/core/device/device_stats.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

namespace binade {
namespace {

[[maybe_unused]] std::string version_text(int version) {
  return version == 0 ? std::string() : text(version / 1000, ".", version % 1000 / 10);
}

DeviceInfo info_of(Device device) {
  DeviceInfo info{.device = device, .name = {}};
  kernels::select_device(device);
  cudaDeviceProp properties = {};
  kernels::check_cuda(cudaGetDeviceProperties(&properties, device.index),
                      "cudaGetDeviceProperties");
  size_t free = 0, total = 0;
  kernels::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory = static_cast<int64_t>(total);
  info.free = static_cast<int64_t>(free);
  info.growable = memory_stats(device).growable;
  return info;
}

}  // namespace

DeviceReport device_report() {
  const kernels::DeviceCount& found = kernels::cuda_devices();
  DeviceReport report{.devices = {}, .reason = found.reason, .toolkit = {}, .driver = {}};
#ifdef BINADE_HOST_EXECUTION
  constexpr Device::Kind kKind = Device::kEmulated;
#else
  constexpr Device::Kind kKind = Device::kCuda;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) {
    report.toolkit = version_text(version);
  }
  version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) {
    report.driver = version_text(version);
  }
#endif
  for (int index = 0; index < found.count; ++index) {
    report.devices.push_back(info_of({kKind, static_cast<int8_t>(index)}));
  }
  return report;
}

}  // namespace binade
