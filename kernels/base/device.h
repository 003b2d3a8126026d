// Device: the device whose memory holds a tensor.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace binade {

struct Device {
  enum Kind : uint8_t { kCpu, kCuda, kEmulated };
  Kind kind = kCpu;
  int8_t index = 0;

  bool operator==(const Device&) const = default;
  bool is_cpu() const { return kind == kCpu; }

  // "cpu", "cuda", "cuda:1", "emulated", or "auto" (the best device this build and machine have).
  // Throws, with the reason, if the device is not available.
  static Device parse(std::string_view text);
  static Device best();
};

std::string to_string(Device device);
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace binade
