#include <binade/kernels/base/device.h>
#include <binade/kernels/base/error.h>

namespace binade {

Device Device::best() { return {}; }

Device Device::parse(std::string_view text) {
  if (text == "auto") {
    return best();
  }
  if (text == "cpu") {
    return {};
  }
#ifdef BINADE_HOST_EXECUTION
  if (text == "emulated") {
    return {Device::kEmulated, 0};
  }
#endif
  const std::string_view kind = text.substr(0, text.find(':'));
  if (kind == "cuda" || kind == "emulated") {
    fail("device: got ", text,
         ", which this build does not have (it was built for the CPU only); use cpu or auto");
  }
  fail("device: got '", text, "', expected auto, cpu, cuda, cuda:N or emulated");
}

std::string to_string(Device device) {
  constexpr const char* kName[] = {"cpu", "cuda:", "emulated:"};
  return device.is_cpu() ? "cpu" : kName[device.kind] + std::to_string(device.index);
}

}  // namespace binade
