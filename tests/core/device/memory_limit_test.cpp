// Tests the memory that limits of control groups leave, with planted files of both versions.
#include <binade/core/device/memory_limit.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/planted_groups.h"

namespace binade::memory_limit_test {
namespace {

using testing::PlantedGroups;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

TEST(ControlGroupRoom, TheLeastOfNestedGroups) {
  PlantedGroups machine;
  machine.mount_second();
  machine.plant("groups", "0::/a/b\n");
  EXPECT_EQ(control_group_room(machine.files()), kNoLimit);
  machine.plant("v2/a/b/memory.max", "max\n");
  machine.plant("v2/a/b/memory.current", "70\n");
  EXPECT_EQ(control_group_room(machine.files()), kNoLimit);
  machine.plant("v2/a/memory.max", "1000\n");
  machine.plant("v2/a/memory.current", "100\n");
  EXPECT_EQ(control_group_room(machine.files()), 900);
  machine.plant("v2/memory.max", "500\n");
  machine.plant("v2/memory.current", "700\n");
  EXPECT_EQ(control_group_room(machine.files()), 0);
}

TEST(ControlGroupRoom, VersionOneInAContainer) {
  PlantedGroups machine;
  machine.mount("memory", "/docker/4f", "cgroup cgroup rw,memory");
  machine.mount("cpu", "/docker/4f", "cgroup cgroup rw,cpu");
  machine.plant("groups", "4:memory:/docker/4f\n2:cpu:/docker/4f\n");
  machine.plant("cpu/memory.limit_in_bytes", "1\n");
  machine.plant("cpu/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(control_group_room(machine.files()), kNoLimit);
  machine.plant("memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.plant("memory/memory.usage_in_bytes", "4096\n");
  EXPECT_EQ(control_group_room(machine.files()), int64_t{9223372036854771712} - 4096);
  machine.plant("memory/inner/memory.limit_in_bytes", "5000\n");
  machine.plant("memory/inner/memory.usage_in_bytes", "1000\n");
  EXPECT_GT(control_group_room(machine.files()), 4000);
  machine.plant("groups", "7:memory:/docker/4f/inner\n");
  EXPECT_EQ(control_group_room(machine.files()), 4000);
}

}  // namespace
}  // namespace binade::memory_limit_test
