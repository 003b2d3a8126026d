#include <binade/kernels/base/device.h>
#include <binade/kernels/base/error.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/kernel_call.h>
#endif

#include <charconv>
#include <limits>
#include <ostream>

namespace binade {
namespace {

constexpr int kCpus = 8;

struct Backend {  // the devices of this build other than the CPU
  Device::Kind kind = Device::kCpu;
  int count = 0;
  std::string reason;  // why there is no device
};

Backend backend() {
#if defined(BINADE_HOST_EXECUTION)
  return {Device::kEmulated, kernels::cuda_devices().count, kernels::cuda_devices().reason};
#elif defined(BINADE_WITH_CUDA)
  return {Device::kCuda, kernels::cuda_devices().count, kernels::cuda_devices().reason};
#else
  return {};
#endif
}

// The reason why this build cannot have a device of this kind.
const char* missing(Device::Kind wanted, Device::Kind built) {
  if (wanted == Device::kEmulated) {
    return "this build does not have the emulated device (configure with --preset emulated)";
  }
  return built == Device::kEmulated
             ? "this build has the emulated device in place of CUDA (configure with --preset cuda)"
             : "this build has only the CPU (configure with -DBINADE_CUDA=ON)";
}

int index_of(std::string_view text, size_t colon) {
  if (colon == std::string_view::npos) {
    return 0;
  }
  int index = -1;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data() + colon + 1, end, index);
  check(status == std::errc() && rest == end && index >= 0 &&
            index <= std::numeric_limits<int8_t>::max(),
        "device: got '", text, "', expected a number of a device after the colon");
  return index;
}

}  // namespace

Device Device::best() {
  const Backend built = backend();
  return built.kind == kCuda && built.count > 0 ? Device{kCuda, 0} : Device{};
}

Device Device::parse(std::string_view text) {
  if (text == "auto") {
    return best();
  }
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (name == "cpu") {
    const int index = index_of(text, colon);
    check(index < kCpus, "device: got ", text, ", expected cpu or cpu:0 to cpu:", kCpus - 1);
    return {kCpu, static_cast<int8_t>(index)};
  }
  check(name == "cuda" || name == "emulated", "device: got '", text,
        "', expected auto, cpu, cuda, cuda:N or emulated");
  const Kind kind = name == "cuda" ? kCuda : kEmulated;
  const int index = index_of(text, colon);
  const Backend built = backend();
  check(built.kind == kind, "device: got ", text, ", but ", missing(kind, built.kind),
        "; use cpu or auto");
  check(built.count > 0, "device: got ", text, ", but ", built.reason, "; use cpu or auto");
  check(index < built.count, "device: got ", text, ", expected an index below ", built.count,
        ", the number of devices");
  return {kind, static_cast<int8_t>(index)};
}

std::string to_string(Device device) {
  constexpr const char* kName[] = {"cpu:", "cuda:", "emulated:"};
  return device == Device{} ? "cpu" : kName[device.kind] + std::to_string(device.index);
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

}  // namespace binade
