#include <binade/kernels/base/error.h>
#include <binade/kernels/base/stream.h>

namespace binade::kernels {
namespace {

constexpr int kMaxDevices = 64;
constinit thread_local StreamHandle current[kMaxDevices] = {};

}  // namespace

StreamHandle current_stream(Device device) { return current[device.index]; }

void set_current_stream(Device device, StreamHandle stream) {
  check(!device.is_cpu() && device.index >= 0 && device.index < kMaxDevices, "stream: got device ",
        device, ", expected a cuda or emulated device");
  current[device.index] = stream;
}

}  // namespace binade::kernels
