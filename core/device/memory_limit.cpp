#include <binade/core/device/device_info.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_limit.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace binade {
namespace {

constexpr const char* kGroups = "/sys/fs/cgroup";

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

// The room in a group and in those around it; `folder` is its path below `root`.
int64_t room_in_groups(const std::string& root, std::string folder, const char* limit,
                       const char* usage) {
  int64_t room = std::numeric_limits<int64_t>::max();
  for (;;) {
    const std::string path = folder == "/" ? root : root + folder;
    const auto most = number_in(path + "/" + limit), used = number_in(path + "/" + usage);
    if (most && used) {
      room = std::min(room, std::max<int64_t>(*most - *used, 0));
    }
    if (folder == "/" || folder.empty()) {
      return room;
    }
    folder.erase(std::max<size_t>(folder.rfind('/'), 1));
  }
}

// /proc/self/cgroup: "0::/PATH" for version 2, "N:memory:/PATH" for version 1. In a container the
// path may be that of the host: then the root of the mount is its own group.
int64_t room_of_groups() {
  std::ifstream lines("/proc/self/cgroup");
  int64_t room = room_in_groups(kGroups, "/", "memory.max", "memory.current");
  for (std::string line; std::getline(lines, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) {
      continue;
    }
    if (line.starts_with("0::")) {
      room = std::min(room,
                      room_in_groups(kGroups, line.substr(path), "memory.max", "memory.current"));
    } else if (line.find(":memory:") != std::string::npos) {
      const std::string root = std::string(kGroups) + "/memory";
      for (const std::string& folder : {line.substr(path), std::string("/")}) {
        room = std::min(
            room, room_in_groups(root, folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
      }
    }
  }
  return room;
}

MemoryRoom host_room() {
  const MemoryStats stats = memory_stats();
  // Cached blocks are taken already; a file cache inside of a group can be dropped, but not counted
  // on.
  const int64_t ram = available_ram(), groups = room_of_groups(), limit = memory_limit();
  MemoryRoom room{.bytes = stats.reserved + std::min(ram, groups),
                  .reason = ram <= groups ? "available RAM" : "limit of the control group"};
  if (ram == std::numeric_limits<int64_t>::max() && groups == ram) {
    room = {ram, "no limit is known"};
  }
  return limit > 0 && limit < room.bytes ? MemoryRoom{limit, "set_memory_limit()"} : room;
}

}  // namespace

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
