// The device of kernel tests: the CPU, or the one that BINADE_TEST_DEVICE names (emulated, cuda).
#pragma once
#include <binade/kernels/base/view.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace binade::kernels {

inline Device test_device() {
  static const Device device = [] {
    const char* name = std::getenv("BINADE_TEST_DEVICE");
    return name ? Device::parse(name) : Device{};
  }();
  return device;
}

// True if the device cannot access host memory (tests/kernels/support/device_bytes.h).
inline bool memory_on_device() {
  static const bool answer = [] {
    const char* where = std::getenv("BINADE_TEST_MEMORY");
    return test_device().kind == Device::kCuda ||
           (!test_device().is_cpu() && where && where == std::string("device"));
  }();
  return answer;
}

// True if tests have time for every combination; host execution of kernels is slow.
inline bool every_combination() { return test_device().is_cpu(); }

// The floating dtypes for tests. If BINADE_TEST_F16 is 0, f16 is left out: except for conversions,
// its kernels are those of bf16, and runs under sanitizers are slow.
inline const std::vector<DType>& floating_dtypes() {
  static const std::vector<DType> dtypes = [] {
    std::vector<DType> all{DType::f64, DType::f32, DType::bf16, DType::f16};
    const char* f16 = std::getenv("BINADE_TEST_F16");
    if (f16 && f16 == std::string("0")) {
      all.pop_back();
    }
    return all;
  }();
  return dtypes;
}

inline View on_test_device(View view) {
  view.device = test_device();
  return view;
}

// Like view_of, for memory that kernels on the test device can access.
inline View test_view(void* data, DType dtype, const Dims& sizes) {
  return on_test_device(view_of(data, dtype, sizes));
}
inline View test_view(void* data, DType dtype, const Dims& sizes, const Dims& strides) {
  return on_test_device(view_of(data, dtype, sizes, strides));
}

}  // namespace binade::kernels
