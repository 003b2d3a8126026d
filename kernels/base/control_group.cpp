#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/error.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

namespace binade::kernels {
namespace {

// A line of mountinfo: "36 35 98:0 ROOT POINT options tags... - TYPE source super-options".
struct GroupMount {
  int version = 0;
  std::string root;   // the group that is seen at `point`
  std::string point;  // a folder
};

// mountinfo writes blanks and backslashes as three octal digits.
std::string unescaped(const std::string& word) {
  constexpr size_t kDigits = 3;
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    unsigned code = 0;
    const char* const digits = word.data() + i + 1;
    if (word[i] == '\\' && i + kDigits < word.size() &&
        std::from_chars(digits, digits + kDigits, code, 8).ptr == digits + kDigits) {
      out += static_cast<char>(code);
      i += kDigits;
    } else {
      out += word[i];
    }
  }
  return out;
}

bool has_entry(const std::string& list, std::string_view wanted) {
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    if (entry == wanted) {
      return true;
    }
  }
  return false;
}

std::vector<GroupMount> group_mounts(std::string_view controller, const std::string& file) {
  std::vector<GroupMount> mounts;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, root, point, type, source, options;
    words >> word >> word >> word >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    const bool second = type == "cgroup2";
    if (second || (type == "cgroup" && has_entry(options, controller))) {
      mounts.push_back({second ? 2 : 1, unescaped(root), unescaped(point)});
    }
  }
  return mounts;
}

bool is_below(const std::string& path, const std::string& root) {
  return root == "/" || path == root || path.starts_with(root + "/");
}

// The folders of the group `path` and of those around it.
void add_folders(const GroupMount& mount, const std::string& path, std::vector<ControlGroup>& out) {
  std::string below = path == "/" || mount.root == "/" ? path : path.substr(mount.root.size());
  while (!below.empty() && below != "/") {
    out.push_back({mount.version, mount.point + below});
    below.erase(below.rfind('/'));
  }
  out.push_back({mount.version, mount.point});
}

std::optional<int64_t> whole_number(const std::string& word) {
  int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// The first words of a file.
std::vector<std::string> first_words(const std::string& file) {
  std::vector<std::string> words(2);
  std::ifstream(file) >> words[0] >> words[1];
  return words;
}

// The limit of one group.
CpuLimit limit_of(const ControlGroup& group) {
  const bool second = group.version == 2;
  const std::string source = group.folder + (second ? "/cpu.max" : "/cpu.cfs_quota_us");
  const std::vector<std::string> words = first_words(source);
  const auto quota = whole_number(words[0]);
  const auto period =
      whole_number(second ? words[1] : first_words(group.folder + "/cpu.cfs_period_us")[0]);
  if (!quota || !period || *quota <= 0 || *period <= 0) {
    return {};  // "max", -1, or no such file
  }
  return {static_cast<double>(*quota) / static_cast<double>(*period), source};
}

}  // namespace

// /proc/self/cgroup has a line "0::PATH" for version 2 and "N:controllers:PATH" for version 1.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const ControlGroupFiles& files) {
  const std::vector<GroupMount> mounts = group_mounts(controller, files.mounts);
  std::vector<ControlGroup> groups;
  std::ifstream lines(files.groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find('/', second) != second + 1) {
      continue;
    }
    const std::string path = line.substr(second + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const int version = line.starts_with("0::") ? 2 : has_entry(controllers, controller) ? 1 : 0;
    const bool is_seen = text(path, "/").find("/../") == std::string::npos;
    const auto fits = [&](const GroupMount& mount) {
      return mount.version == version && is_seen && is_below(path, mount.root);
    };
    const bool any_fits = std::any_of(mounts.begin(), mounts.end(), fits);
    for (const GroupMount& mount : mounts) {
      if (fits(mount)) {
        add_folders(mount, path, groups);
      } else if (mount.version == version && !any_fits) {
        groups.push_back({version, mount.point});
      }
    }
  }
  return groups;
}

int CpuLimit::of(int cores) const {
  const double most = cpus > 0 ? std::min(std::ceil(cpus), static_cast<double>(cores)) : cores;
  return std::max(1, static_cast<int>(most));
}

CpuLimit cpu_limit(const ControlGroupFiles& files) {
  CpuLimit least;
  for (const ControlGroup& group : control_groups("cpu", files)) {
    const CpuLimit limit = limit_of(group);
    if (limit.cpus > 0 && (least.cpus == 0 || limit.cpus < least.cpus)) {
      least = limit;
    }
  }
  return least;
}

UsableCores usable_cores(const ControlGroupFiles& files) {
  UsableCores cores{.limit = cpu_limit(files)};
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    cores.in_mask = std::max(1, CPU_COUNT(&mask));
  } else {  // more cores than a mask has
    cores.in_mask = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  cores.count = cores.limit.of(cores.in_mask);
  return cores;
}

std::string to_string(const UsableCores& cores) {
  return cores.count == cores.in_mask ? text(cores.count)
                                      : text(cores.count, " of ", cores.in_mask, ": the limit of ",
                                             cores.limit.cpus, " CPUs in ", cores.limit.source);
}

}  // namespace binade::kernels
