// A machine without a device: the errors that a program gets, and that it runs on the CPU.
#include "device_kernels.h"

#include <binade/core/device/device_info.h>

#include <cstdlib>

namespace binade::no_device_test {
namespace {

const bool kConfigured = setenv("BINADE_HOST_DEVICES", "0", 1) == 0;  // before anything asks

TEST(NoDeviceTest, TheReasonIsNamed) {
  ASSERT_TRUE(kConfigured);
  expect_parts(error_of<Error>([] { Device::parse("emulated"); }),
               {"got emulated", "no GPU", "CUDA_VISIBLE_DEVICES", "use cpu or auto"});
  EXPECT_EQ(Device::best(), Device{});
  EXPECT_EQ(Device::parse("auto"), Device{});
  const DeviceReport report = device_report();
  EXPECT_TRUE(report.devices.empty());
  expect_parts(report.reason, {"no GPU"});
}

TEST(NoDeviceTest, DeviceMemoryIsAnErrorThatNamesTheCall) {
  EXPECT_THROW(device_allocate(kDevice, 16), Error);
  EXPECT_THROW(Stream{kDevice}, Error);
}

TEST(NoDeviceTest, CopiesOnTheCpuNeedNone) {
  const float from = 3;
  float to = 0;
  device_copy(&to, Device{}, &from, Device{}, sizeof from);
  EXPECT_EQ(to, 3);
}

}  // namespace
}  // namespace binade::no_device_test
