#include <binade/core/device/device_info.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_limit.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace binade {
namespace {

// A file that holds one number; none for "max" and without the file.
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

int64_t available_ram() {
  std::ifstream lines("/proc/meminfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kilobytes = 0;
    constexpr int64_t kKilobyte = 1024;
    if (words >> name >> kilobytes && name == "MemAvailable:") {
      return kilobytes * kKilobyte;
    }
  }
  return std::numeric_limits<int64_t>::max();
}

MemoryRoom host_room() {
  const MemoryStats stats = memory_stats();
  // Cached blocks are taken already; a file cache inside of a group can be dropped, but not counted
  // on.
  const int64_t ram = available_ram(), groups = control_group_room(), limit = memory_limit();
  MemoryRoom room{.bytes = stats.reserved + std::min(ram, groups),
                  .reason = ram <= groups ? "available RAM" : "limit of the control group"};
  if (ram == std::numeric_limits<int64_t>::max() && groups == ram) {
    room = {ram, "no limit is known"};
  }
  return limit > 0 && limit < room.bytes ? MemoryRoom{limit, "set_memory_limit()"} : room;
}

}  // namespace

int64_t control_group_room(const kernels::ControlGroupFiles& files) {
  int64_t room = std::numeric_limits<int64_t>::max();
  for (const kernels::ControlGroup& group : kernels::control_groups("memory", files)) {
    const bool second = group.version == 2;
    const auto most = number_in(group.folder + (second ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used =
        number_in(group.folder + (second ? "/memory.current" : "/memory.usage_in_bytes"));
    if (most && used) {
      room = std::min(room, std::max<int64_t>(*most - *used, 0));
    }
  }
  return room;
}

MemoryRoom memory_room(Device device) {
  if (device.is_cpu()) {
    return host_room();
  }
  for (const DeviceInfo& info : device_report().devices) {
    if (info.device == device) {
      return {memory_stats(device).reserved + info.free, text("free memory of ", device)};
    }
  }
  fail("memory_room: got ", device, ", which this machine does not have");
}

}  // namespace binade
