#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <array>
#include <mutex>

namespace binade::kernels {
namespace {

constexpr size_t kMostDevices = 64;

DeviceFacts ask(Device device) {
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return {.processors = properties.multiProcessorCount,
          .capability = properties.major * 10 + properties.minor,
          .name = properties.name};
}

}  // namespace

const DeviceFacts& device_facts(Device device) {
  static std::array<std::once_flag, kMostDevices> asked;
  static auto& facts = *new std::array<DeviceFacts, kMostDevices>;
  check(!device.is_cpu() && device.index >= 0 && static_cast<size_t>(device.index) < kMostDevices,
        "device facts: got device ", device, ", expected a cuda or emulated one");
  const auto index = static_cast<size_t>(device.index);
  std::call_once(asked[index], [&] { facts[index] = ask(device); });
  return facts[index];
}

}  // namespace binade::kernels
