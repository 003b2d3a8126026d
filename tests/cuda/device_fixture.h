// Shared code for tests of the runtime that run on the emulated device and, in the bundle of
// scripts/gpu-check, on a GPU: the device, memory on it, a fixture, and the few functions that only
// the fake runtime has.
#pragma once
#include <binade/core/device/device_memory.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/host_sync.h>
#include <binade/kernels/base/view.h>
#include <gtest/gtest.h>
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/queue.h>
#endif

#include <string>
#include <utility>
#include <vector>

namespace binade {

#ifdef BINADE_HOST_EXECUTION
inline constexpr Device kDevice{Device::kEmulated, 0};
#else
inline constexpr Device kDevice{Device::kCuda, 0};
#endif

// Sets the order of deferred streams of the fake runtime; a GPU has its own order.
inline void set_order([[maybe_unused]] uint64_t seed) {
#ifdef BINADE_HOST_EXECUTION
  kernels::host::stream_options().seed = seed;
#endif
}

// All orders of deferred streams that tests try.
inline constexpr uint64_t kSeeds = 8;

// How often the host waited for the device since the counter was made: as the fake runtime counts
// it, on a GPU as HostSyncGuard does.
class WaitCounter {
 public:
#ifdef BINADE_HOST_EXECUTION
  int64_t count() const { return kernels::host::runtime_counts().waits - before_; }

 private:
  const int64_t before_ = kernels::host::runtime_counts().waits;
#else
  int64_t count() const { return guard_.count(); }

 private:
  HostSyncGuard guard_{HostSyncGuard::record};
#endif
};

// Floats in device memory.
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) : count_(count) { data_ = device_allocate(kDevice, bytes()); }
  explicit DeviceArray(const std::vector<float>& values)
      : DeviceArray(static_cast<int64_t>(values.size())) {
    set(values);
  }
  ~DeviceArray() {
    if (data_) {
      device_release(kDevice, data_, bytes());
    }
  }
  DeviceArray(DeviceArray&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
  }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  View view() const {
    View view = view_of(data_, DType::f32, {count_});
    view.device = kDevice;
    return view;
  }
  operator View() const { return view(); }  // NOLINT
  float* data() const { return static_cast<float*>(data_); }
  size_t bytes() const { return static_cast<size_t>(count_) * sizeof(float); }
  void set(const std::vector<float>& values) const {
    device_copy(data_, kDevice, values.data(), Device{}, bytes());
  }
  std::vector<float> get() const {
    std::vector<float> values(static_cast<size_t>(count_));
    device_copy(values.data(), Device{}, data_, kDevice, bytes());
    return values;
  }

 private:
  void* data_ = nullptr;
  int64_t count_;
};

inline std::vector<float> repeated(float value, int64_t count) {
  return std::vector<float>(static_cast<size_t>(count), value);
}

// Starts each test without faults and with an empty cache; in the fake runtime in deferred mode
// unless the test changes it. Expects that nothing stays allocated.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef BINADE_HOST_EXECUTION
    kernels::host::reset_faults();
    kernels::host::stream_options().deferred = true;
    kernels::host::stream_options().seed = 0;
#endif
    synchronize(kDevice);
    empty_cache(kDevice);
    allocated_ = memory_stats(kDevice).allocated;
  }
  void TearDown() override {
#ifdef BINADE_HOST_EXECUTION
    kernels::host::reset_faults();
#endif
    fail_allocation(kDevice, 0);
    synchronize(kDevice);
    EXPECT_EQ(memory_stats(kDevice).allocated, allocated_);
    empty_cache(kDevice);
#ifdef BINADE_HOST_EXECUTION
    kernels::host::stream_options() = options_;
#endif
  }

 private:
#ifdef BINADE_HOST_EXECUTION
  const kernels::host::StreamOptions options_ = kernels::host::stream_options();
#endif
  int64_t allocated_ = 0;
};

// The text of the error that `body` throws; fails the test if it throws none.
template <class E, class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another type: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

}  // namespace binade
