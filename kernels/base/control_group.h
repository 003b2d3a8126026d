// Control groups (cgroups) of Linux, of both versions: in which groups this process is, and how
// much processor time they leave it. A container's limits are set this way (docker --cpus, limits
// of Kubernetes, CPUQuota= of systemd); the affinity mask does not show them.
// Source: cgroups(7), proc_pid_mountinfo(5), and the kernel's cgroup-v2.rst and sched-bwc.rst.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace binade::kernels {

// Where Linux tells of groups; tests plant files of their own.
struct ControlGroupFiles {
  std::string groups = "/proc/self/cgroup";     // the group of this process in each hierarchy
  std::string mounts = "/proc/self/mountinfo";  // where hierarchies are mounted
};

struct ControlGroup {
  int version = 0;     // 1 or 2
  std::string folder;  // has the files of the group
};

// The group of this process in each hierarchy that can limit `controller` ("cpu", "memory"), each
// followed by the groups around it up to the root of the mount; all of them bind the process. In a
// container that does not see its own path the root of the mount is its group. Folders may be
// missing. Empty without control groups.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const ControlGroupFiles& files = {});

// The least CPU limit of these groups: cpu.max (version 2), or cpu.cfs_quota_us over
// cpu.cfs_period_us (version 1). Files that have no limit or cannot be read as one do not count.
struct CpuLimit {
  double cpus = 0;     // processor time by wall time, such as 1.5; 0: no limit
  std::string source;  // the file that has it; empty: no limit

  // `cores`, but no more than the limit rounded up, and at least 1.
  int of(int cores) const;
};
CpuLimit cpu_limit(const ControlGroupFiles& files = {});

// The cores that this process may keep busy: those of its affinity mask within the CPU limit of its
// control groups. The default of set_threads() and of the loader's workers. Reads small files anew
// at each call.
struct UsableCores {
  int count = 1;
  int in_mask = 1;
  CpuLimit limit = {};
};
UsableCores usable_cores(const ControlGroupFiles& files = {});

// "2", or "2 of 64: the limit of 1.5 CPUs in /sys/fs/cgroup/cpu.max".
std::string to_string(const UsableCores& cores);

}  // namespace binade::kernels
