// Shared by the conformance cases: arrays in device memory, the list of cases, comparison and the
// report.
#pragma once
#include <binade/kernels/base/view.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/device.cuh>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace binade::conformance {

#ifdef BINADE_HOST_EXECUTION
inline constexpr Device kDevice{Device::kEmulated, 0};
inline constexpr bool kHardware = false;
#else
inline constexpr Device kDevice{Device::kCuda, 0};
inline constexpr bool kHardware = true;
#endif

inline void check(cudaError_t status, const char* what) {
  kernels::check_cuda(static_cast<int>(status), what);
}

// Elements in device memory, every byte 0xFF at first.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) {
    void* block = nullptr;
    check(cudaMalloc(&block, bytes()), "cudaMalloc");
    data_ = static_cast<T*>(block);
    check(cudaMemset(data_, 0xff, bytes()), "cudaMemset");
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return data_; }
  std::vector<T> get() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  size_t bytes() const { return std::max<size_t>(count_, 1) * sizeof(T); }
  size_t count_;
  T* data_;
};

// Starts a kernel as a separate operation.
template <class... P, class... A>
void start(const kernels::Launch& config, void (*kernel)(P...), A&&... arguments) {
  View on_device = kNoView;
  on_device.device = kDevice;
  const kernels::KernelCall call("conformance", on_device);
  kernels::launch(config, kernel, std::forward<A>(arguments)...);
}

inline int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}
inline bool has_sm80() { return attribute(cudaDevAttrComputeCapabilityMajor) >= 8; }

class Report;
struct Case {
  const char* name;
  void (*run)(Report&);
};

// One line per check; a check that the device cannot run is skipped with the reason.
class Report {
 public:
  void result(const std::string& name, bool ok, const std::string& detail = "");
  void skip(const std::string& name, const std::string& reason);
  // Equal bytes.
  template <class T>
  void same(const std::string& name, const std::vector<T>& got, const std::vector<T>& want) {
    size_t bad = got.size() == want.size() ? 0 : 1, first = 0;
    for (size_t i = 0; i < want.size() && i < got.size(); ++i) {
      if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0 && bad++ == 0) {
        first = i;
      }
    }
    result(name, bad == 0,
           bad == 0 ? std::string()
                    : text(bad, " of ", want.size(), " differ, the first at ", first, ": got ",
                           shown(got[first]), ", expected ", shown(want[first])));
  }

  struct Line {
    std::string status, name, detail;
  };
  const std::vector<Line>& lines() const { return lines_; }
  int count(const std::string& status) const;

 private:
  template <class T>
  static std::string shown(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return text(value);
    } else {
      return text("the bits ", value.bits);
    }
  }
  std::vector<Line> lines_;
};

inline std::vector<uint16_t> random_bits(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) {
    value = static_cast<uint16_t>(generator());
  }
  return values;
}

}  // namespace binade::conformance
