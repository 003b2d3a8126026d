// Memory for tests with a host side, which the test reads and writes, and a device side, which
// kernels use. On the CPU both are the same memory; on "cuda" they are separate, and on "emulated"
// too if BINADE_TEST_MEMORY is "device".
#pragma once
#include <tests/kernels/support/test_device.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/call_count_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#endif

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace binade::kernels {

// device(), which every view uses, copies what the host has written to the device. The first host
// access after a kernel call copies back. So a view may be kept while kernels run, but not while
// the host writes.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::vector<std::byte> bytes) : host_(std::move(bytes)) {}
  DeviceBytes(const DeviceBytes& other) : host_(other.host()) {}
  DeviceBytes(DeviceBytes&&) noexcept = default;
  DeviceBytes& operator=(const DeviceBytes& other) { return *this = DeviceBytes(other); }
  DeviceBytes& operator=(DeviceBytes&&) noexcept = default;

  const std::vector<std::byte>& host() const {
    fetch();
    return host_;
  }
  std::byte* writable() {
    fetch();
    newer_on_host_ = true;
    return host_.data();
  }

#ifdef BINADE_WITH_CUDA
  std::byte* device() {
    if (!memory_on_device()) {
      return host_.data();
    }
    fetch();
    if (!device_) {
      device_ = std::make_unique<Workspace>(std::max<size_t>(host_.size(), 1), test_device());
      newer_on_host_ = true;
    }
    if (newer_on_host_) {
      copy(device_->as<std::byte>(), host_.data(), cudaMemcpyHostToDevice);
      newer_on_host_ = false;
    }
    calls_ = started_calls();
    return device_->as<std::byte>();
  }

 private:
  void fetch() const {
    if (device_ && !newer_on_host_ && calls_ != started_calls()) {
      copy(host_.data(), device_->as<std::byte>(), cudaMemcpyDeviceToHost);
      calls_ = started_calls();
    }
  }
  void copy(void* to, const void* from, cudaMemcpyKind kind) const {
    if (host_.empty()) {
      return;
    }
#ifdef BINADE_HOST_EXECUTION
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    static_cast<void>(kind);
    std::memcpy(to, from, host_.size());
#else
    check_cuda(cudaMemcpy(to, from, host_.size(), kind), "cudaMemcpy");
#endif
  }

  std::unique_ptr<Workspace> device_;
  mutable unsigned calls_ = 0;  // call count when both sides were last equal
#else
  std::byte* device() { return host_.data(); }

 private:
  void fetch() const {}
#endif
  mutable std::vector<std::byte> host_;
  bool newer_on_host_ = false;
};

// A few values for tests that need no layouts. Read them like an array and write them with set().
template <class T>
class TestValues {
 public:
  TestValues(std::initializer_list<T> values) : TestValues(std::vector<T>(values)) {}
  explicit TestValues(size_t count, T value = {}) : TestValues(std::vector<T>(count, value)) {}
  explicit TestValues(const std::vector<T>& values) : size_(values.size()) {
    std::vector<std::byte> bytes(size_ * sizeof(T));
    for (size_t i = 0; i < size_; ++i) {
      const T value = values[i];
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    bytes_ = DeviceBytes(std::move(bytes));
  }

  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void set(size_t i, const T& value) { reinterpret_cast<T*>(bytes_.writable())[i] = value; }
  bool operator==(const std::vector<T>& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

  // Skips the first `first` elements.
  View view(DType dtype, const Dims& sizes, size_t first = 0) {
    return test_view(bytes_.device() + first * sizeof(T), dtype, sizes);
  }
  View view(DType dtype, const Dims& sizes, const Dims& strides) {
    return test_view(bytes_.device(), dtype, sizes, strides);
  }

 private:
  const T* data() const { return reinterpret_cast<const T*>(bytes_.host().data()); }

  size_t size_;
  DeviceBytes bytes_;
};

}  // namespace binade::kernels
