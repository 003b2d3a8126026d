#include <binade/core/device/device_info.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/kernel.h>

namespace binade {

std::string describe(Device device) {
  if constexpr (!kernels::kWithCuda) {
    return to_string(device);
  }
  const DeviceReport report = device_report();
  if (device.is_cpu()) {
    return report.reason.empty() ? "cpu" : text("cpu (no GPU: ", report.reason, ")");
  }
  for (const DeviceInfo& info : report.devices) {
    if (info.device == device) {
      return text(device, " (", info.name, ")");
    }
  }
  return to_string(device);
}

}  // namespace binade
