// Small kernels, arrays and a fixture for tests of the runtime on the emulated device.
#pragma once
#include <binade/core/device/device_memory.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/graph.h>
#include <binade/core/device/stream.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/host/queue.h>
#include <gtest/gtest.h>
#include <binade/kernels/cuda/device.cuh>

#include <vector>

namespace binade {

inline constexpr Device kDevice{Device::kEmulated, 0};

inline __global__ void scale_kernel(const float* x, float* y, int n, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = factor * x[i];
  }
}

// y = factor * x on the current stream.
inline void scale(const View& x, const View& y, float factor) {
  const kernels::KernelCall call("scale", y);
  const auto n = static_cast<int>(y.numel);
  kernels::launch({"scale_kernel", dim3(static_cast<unsigned>((n + 63) / 64)), dim3(64)},
                  scale_kernel, x.as<float>(), y.as<float>(), n, factor);
}

inline __global__ void sum_kernel(const float* a, const float* b, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    y[i] = a[i] + b[i];
  }
}

inline void sum(const View& a, const View& b, const View& y) {
  const kernels::KernelCall call("sum", y);
  const auto n = static_cast<int>(y.numel);
  kernels::launch({"sum_kernel", dim3(static_cast<unsigned>((n + 63) / 64)), dim3(64)}, sum_kernel,
                  a.as<float>(), b.as<float>(), y.as<float>(), n);
}

// A lane that does not take part in a barrier of its block.
inline __global__ void divergent_barrier_kernel() {
  if (threadIdx.x > 0) {
    __syncthreads();
  }
}

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
  DeviceArray& operator=(DeviceArray&&) = delete;

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

// Starts each test without faults and with an empty cache, in deferred mode unless the test changes
// it. Expects that nothing stays allocated.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kernels::host::reset_faults();
    kernels::host::stream_options().deferred = true;
    kernels::host::stream_options().seed = 0;
    synchronize(kDevice);
    empty_cache(kDevice);
    allocated_ = memory_stats(kDevice).allocated;
  }
  void TearDown() override {
    kernels::host::reset_faults();
    fail_allocation(kDevice, 0);
    synchronize(kDevice);
    EXPECT_EQ(memory_stats(kDevice).allocated, allocated_);
    empty_cache(kDevice);
    kernels::host::stream_options() = options_;
  }

 private:
  const kernels::host::StreamOptions options_ = kernels::host::stream_options();
  int64_t allocated_ = 0;
};

// All orders of deferred streams that tests try.
inline constexpr uint64_t kSeeds = 8;

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
