// Two emulated devices whose driver has no virtual memory.
#include "device_kernels.h"

#include <binade/core/device/device_info.h>

#include <cstdlib>

namespace binade::devices_test {
namespace {

namespace host = kernels::host;

// Must run before anything asks for the devices.
const bool kConfigured = [] {
  setenv("BINADE_HOST_DEVICES", "2", 1);
  host::stream_options().virtual_memory = false;
  host::stream_options().deferred = true;
  return true;
}();

constexpr Device kFirst{Device::kEmulated, 0}, kSecond{Device::kEmulated, 1};
constexpr int64_t kCount = 50;

View floats_at(void* data, Device device) {
  View view = view_of(data, DType::f32, {kCount});
  view.device = device;
  return view;
}

TEST(DevicesTest, AreFoundAndReported) {
  ASSERT_TRUE(kConfigured);
  EXPECT_EQ(Device::parse("emulated"), kFirst);
  EXPECT_EQ(Device::parse("emulated:1"), kSecond);
  EXPECT_THROW(Device::parse("emulated:2"), Error);
  EXPECT_THROW(Device::parse("emulated:"), Error);
  EXPECT_THROW(Device::parse("emulated:-1"), Error);
  EXPECT_THROW(Device::parse("emulated:1x"), Error);
  const DeviceReport report = device_report();
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[1].device, kSecond);
  EXPECT_FALSE(report.devices[1].growable);
  EXPECT_FALSE(memory_stats(kSecond).growable);
}

TEST(DevicesTest, KernelsRunWhereTheirOperandsAreAndCopiesCross) {
  const size_t bytes = kCount * sizeof(float);
  const std::vector<float> values = repeated(3, kCount);
  void* on_first = device_allocate(kFirst, bytes);
  void* on_second = device_allocate(kSecond, bytes);
  void* result = device_allocate(kSecond, bytes);
  const Stream stream(kSecond);
  device_copy(on_first, kFirst, values.data(), Device{}, bytes);
  scale(floats_at(on_first, kFirst), floats_at(on_first, kFirst), 2);
  synchronize(kFirst);
  {
    const StreamGuard guard(stream);
    device_copy(on_second, kSecond, on_first, kFirst, bytes);
    scale(floats_at(on_second, kSecond), floats_at(result, kSecond), 5);
    stream.synchronize();
  }
  std::vector<float> read(static_cast<size_t>(kCount));
  device_copy(read.data(), Device{}, result, kSecond, bytes);
  EXPECT_EQ(read, repeated(30, kCount));
  EXPECT_EQ(memory_stats(kSecond).allocated, 2 * memory_stats(kFirst).allocated);
  device_release(kFirst, on_first, bytes);
  device_release(kSecond, on_second, bytes);
  device_release(kSecond, result, bytes);
  synchronize(kFirst);
  synchronize(kSecond);
  EXPECT_EQ(memory_stats(kFirst).allocated, 0);
  EXPECT_EQ(memory_stats(kSecond).allocated, 0);
}

// The host does not wait: the copy orders the two streams.
TEST(DevicesTest, ACopyComesAfterItsSourceIsMadeAndBeforeItChanges) {
  const size_t bytes = kCount * sizeof(float);
  const std::vector<float> values = repeated(3, kCount);
  for (const uint64_t run : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const uint64_t seed = run / 2;
    host::stream_options().seed = seed;
    void* source = device_allocate(kFirst, bytes);
    void* target = device_allocate(kSecond, bytes);
    device_copy(source, kFirst, values.data(), Device{}, bytes);
    scale(floats_at(source, kFirst), floats_at(source, kFirst), 2);
    device_copy(target, kSecond, source, kFirst, bytes);
    scale(floats_at(source, kFirst), floats_at(source, kFirst), 5);
    const auto expect = [&](void* block, Device device, float value) {
      std::vector<float> read(static_cast<size_t>(kCount));
      device_copy(read.data(), Device{}, block, device, bytes);
      EXPECT_EQ(read, repeated(value, kCount)) << seed;
    };
    if (run % 2 == 0) {  // who waits first decides what runs first
      expect(source, kFirst, 30);
    }
    expect(target, kSecond, 6);
    expect(source, kFirst, 30);
    device_release(kFirst, source, bytes);
    device_release(kSecond, target, bytes);
    synchronize(kFirst);
    synchronize(kSecond);
  }
  host::stream_options().seed = 0;
}

TEST(DevicesTest, GuardsRestoreWhatWasSelected) {
  int device = -1;
  {
    const DeviceGuard outer(kFirst);
    {
      const DeviceGuard inner(kSecond);
      cudaGetDevice(&device);
      EXPECT_EQ(device, 1);
    }
    cudaGetDevice(&device);
    EXPECT_EQ(device, 0);
  }
  const Stream stream(kFirst);
  EXPECT_THROW(Event(kSecond).record(stream), Error);
  const Stream before = Stream::current(kFirst);
  {
    const StreamGuard guard(stream);
    EXPECT_EQ(Stream::current(kFirst), stream);
    EXPECT_NE(Stream::current(kSecond), stream);
  }
  EXPECT_EQ(Stream::current(kFirst), before);
}

TEST(DevicesTest, AStreamOfAnotherDeviceIsRefused) {
  void* block = device_allocate(kFirst, kCount * sizeof(float));
  const Stream other(kSecond);
  const View view = floats_at(block, kFirst);
  kernels::set_current_stream(kFirst, other.handle());
  expect_parts(error_of<kernels::CudaError>([&] { scale(view, view, 1); }),
               {"cudaErrorInvalidResourceHandle", "emulated:0"});
  kernels::set_current_stream(kFirst, nullptr);
  device_release(kFirst, block, kCount * sizeof(float));
}

}  // namespace
}  // namespace binade::devices_test
