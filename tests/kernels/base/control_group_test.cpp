// Tests the limits of control groups with planted files of both versions.
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/parallel.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "tests/support/planted_groups.h"

namespace binade::kernels::control_group_test {
namespace {

using testing::PlantedGroups;

TEST(ControlGroup, NoFilesAreNoLimit) {
  const PlantedGroups none;
  EXPECT_TRUE(control_groups("cpu", none.files()).empty());
  EXPECT_EQ(none.limit().cpus, 0);
  EXPECT_EQ(none.limit().of(3), 3);
  EXPECT_EQ(usable_cores(none.files()).count, usable_cores(none.files()).in_mask);
}

TEST(ControlGroup, VersionTwo) {
  PlantedGroups machine;
  machine.mount_second();
  machine.plant("groups", "0::/\n");
  machine.plant("v2/cpu.max", "150000 100000\n");
  EXPECT_EQ(machine.limit().cpus, 1.5);
  EXPECT_EQ(machine.limit().source, machine.path("v2/cpu.max"));
  EXPECT_EQ(machine.limit().of(64), 2);
  EXPECT_EQ(machine.limit().of(1), 1);
}

TEST(ControlGroup, VersionTwoWithoutALimit) {
  PlantedGroups machine;
  machine.mount_second();
  machine.plant("groups", "0::/\n");
  machine.plant("v2/cpu.max", "max 100000\n");
  EXPECT_EQ(machine.limit().cpus, 0);
  EXPECT_EQ(machine.limit().source, "");
}

TEST(ControlGroup, TheLeastOfNestedGroupsCounts) {
  PlantedGroups machine;
  machine.mount_second();
  machine.plant("groups", "0::/a/b/c\n");
  machine.plant("v2/a/b/c/cpu.max", "max 100000\n");
  machine.plant("v2/a/b/cpu.max", "20000 10000\n");
  machine.plant("v2/a/cpu.max", "800000 100000\n");
  machine.plant("v2/a/b/other/cpu.max", "1000 100000\n");
  EXPECT_EQ(machine.limit().cpus, 2);
  EXPECT_EQ(machine.limit().source, machine.path("v2/a/b/cpu.max"));
  std::vector<std::string> folders;
  for (const ControlGroup& group : control_groups("memory", machine.files())) {
    EXPECT_EQ(group.version, 2);
    folders.push_back(group.folder);
  }
  EXPECT_EQ(folders, (std::vector<std::string>{machine.path("v2/a/b/c"), machine.path("v2/a/b"),
                                               machine.path("v2/a"), machine.path("v2")}));
}

TEST(ControlGroup, VersionOne) {
  PlantedGroups machine;
  machine.mount("cpu", "/", "cgroup cgroup rw,cpu,cpuacct");
  machine.mount("memory", "/", "cgroup cgroup rw,memory");
  machine.plant("groups", "9:name=systemd:/\n4:memory:/m\n2:cpu,cpuacct:/x/y\n0::/\n");
  machine.plant("cpu/cpu.cfs_quota_us", "-1\n");
  machine.plant("cpu/cpu.cfs_period_us", "100000\n");
  machine.plant("cpu/x/cpu.cfs_quota_us", "25000\n");
  machine.plant("cpu/x/cpu.cfs_period_us", "100000\n");
  machine.plant("memory/m/cpu.cfs_quota_us", "1000\n");
  machine.plant("memory/m/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.limit().cpus, .25);
  EXPECT_EQ(machine.limit().source, machine.path("cpu/x/cpu.cfs_quota_us"));
  EXPECT_EQ(usable_cores(machine.files()).count, 1);
  const auto memory = control_groups("memory", machine.files());
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0].folder, machine.path("memory/m"));
  EXPECT_EQ(memory[0].version, 1);
}

// In Docker without cgroup namespaces the path is the host's, and the container's group is mounted.
TEST(ControlGroup, TheGroupOfAContainerIsMountedAsTheRoot) {
  PlantedGroups machine;
  machine.mount("cpu", "/docker/4f", "cgroup cgroup rw,cpu");
  machine.mount_second("/docker/4f");
  machine.plant("groups", "2:cpu:/docker/4f\n0::/docker/4f/inner\n");
  machine.plant("cpu/cpu.cfs_quota_us", "300000\n");
  machine.plant("cpu/cpu.cfs_period_us", "100000\n");
  machine.plant("v2/inner/cpu.max", "400000 100000\n");
  EXPECT_EQ(machine.limit().cpus, 3);
  EXPECT_EQ(control_groups("cpu", machine.files()).size(), 3U);
}

TEST(ControlGroup, APathOutsideOfTheMountMeansItsRoot) {
  for (const std::string path : {"/../../host", "/elsewhere", "/docker/4fa"}) {
    PlantedGroups machine;
    machine.mount_second("/docker/4f");
    machine.plant("groups", "0::" + path + "\n");
    machine.plant("v2/cpu.max", "300000 100000\n");
    EXPECT_EQ(machine.limit().cpus, 3) << path;
  }
}

// Another group's mount says nothing about this process.
TEST(ControlGroup, MountsOfOtherGroupsAreLeftOut) {
  PlantedGroups machine;
  machine.mount("foreign", "/docker/aa", "cgroup2 cgroup2 rw");
  machine.mount_second();
  machine.plant("groups", "0::/docker/4f\n");
  machine.plant("foreign/cpu.max", "10000 100000\n");
  machine.plant("v2/docker/4f/cpu.max", "500000 100000\n");
  EXPECT_EQ(machine.limit().cpus, 5);
}

TEST(ControlGroup, WhatCannotBeReadIsNoLimit) {
  for (const std::string content :
       {"", "\n", "max", "100000", "-5 100000", "100000 0", "0 100000", "1e5 100000", "12x 100",
        "99999999999999999999 100000", "100000 -1", "\xff\xfe"}) {
    PlantedGroups machine;
    machine.mount_second();
    machine.plant("groups", "0::/\n");
    machine.plant("v2/cpu.max", content);
    EXPECT_EQ(machine.limit().cpus, 0) << content;
  }
  for (const std::string groups : {"", "0", "0:", "0::", "0::a", ":::", "x\n\n0:cpu", "2:cpu:"}) {
    PlantedGroups machine;
    machine.mount_second();
    machine.plant("groups", groups);
    machine.plant("v2/cpu.max", "100000 100000");
    EXPECT_TRUE(control_groups("cpu", machine.files()).empty()) << groups;
  }
}

TEST(ControlGroup, ALargeLimitDoesNotOverflow) {
  PlantedGroups machine;
  machine.mount_second();
  machine.plant("groups", "0::/\n");
  machine.plant("v2/cpu.max", "9223372036854775807 1\n");
  EXPECT_EQ(machine.limit().of(7), 7);
}

TEST(ControlGroup, Words) {
  EXPECT_EQ(to_string(UsableCores{.count = 4, .in_mask = 4}), "4");
  EXPECT_EQ(to_string(UsableCores{2, 64, {1.5, "/g/cpu.max"}}),
            "2 of 64: the limit of 1.5 CPUs in /g/cpu.max");
}

// The usable cores are those of the affinity mask, and threads() follows.
TEST(ControlGroup, UsableCoresOfThisProcess) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const UsableCores cores = usable_cores();
  EXPECT_EQ(cores.in_mask, CPU_COUNT(&mask));
  EXPECT_EQ(cores.count, cores.limit.of(cores.in_mask));
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    const int before = threads();
    set_threads(0);
    EXPECT_EQ(threads(), cores.count);
    set_threads(before);
  }
}

}  // namespace
}  // namespace binade::kernels::control_group_test
