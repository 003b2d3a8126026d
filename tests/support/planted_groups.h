// Planted files of control groups (kernels/base/control_group.h), as on a machine of their own.
#pragma once
#include <binade/kernels/base/control_group.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_directory.h"

namespace binade::testing {

class PlantedGroups {
 public:
  PlantedGroups() {
    plant("mounts", "22 27 0:21 / /proc rw,relatime - proc proc rw\nnonsense\n\n");
  }

  void plant(const std::string& file, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::app) << content;
  }

  // Mounts the group `root` of a hierarchy at a folder; `rest`: type, source and options.
  void mount(const std::string& point, const std::string& root, const std::string& rest) {
    std::string escaped;
    for (const char c : path(point)) {
      escaped += c == ' ' ? "\\040" : std::string(1, c);
    }
    plant("mounts", "31 23 0:28 " + root + " " + escaped + " rw,nosuid shared:9 - " + rest + "\n");
  }
  void mount_second(const std::string& root = "/") { mount("v2", root, "cgroup2 cgroup2 rw"); }

  std::string path(const std::string& file) const { return folder_ / ("a b/" + file); }
  kernels::ControlGroupFiles files() const { return {path("groups"), path("mounts")}; }
  kernels::CpuLimit limit() const { return kernels::cpu_limit(files()); }

 private:
  TemporaryDirectory folder_;
};

}  // namespace binade::testing
