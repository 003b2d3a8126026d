// A typed array with any strides, read and written as double, for inputs and outputs of contraction
// tests. Memory outside the elements holds a canary that must not change.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/view.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/device_bytes.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace binade::kernels {

class StridedArray {
 public:
  // `order` lists the dimensions from outermost to innermost in memory; `gap` unused elements
  // follow every run of the innermost dimension.
  StridedArray(DType dtype, const Dims& sizes, std::vector<int> order = {}, int64_t gap = 0)
      : dtype_(dtype), sizes_(sizes), strides_(Dims::of(sizes.size(), 1)) {
    if (order.empty()) {
      order.resize(static_cast<size_t>(sizes.size()));
      std::iota(order.begin(), order.end(), 0);
    }
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides_[order[i]] = stride;
      stride = stride * std::max<int64_t>(sizes[order[i]], 1) + (i + 1 == order.size() ? gap : 0);
    }
    bytes_ = DeviceBytes(
        std::vector<std::byte>(static_cast<size_t>(stride) * size_of(dtype), std::byte{0x5a}));
    used_.assign(static_cast<size_t>(stride), false);
    each([&](const std::vector<int64_t>& at) { used_[static_cast<size_t>(offset(at))] = true; });
  }

  View view() { return on_test_device(view_of(bytes_.device(), dtype_, sizes_, strides_)); }
  const Dims& sizes() const { return sizes_; }

  template <class At>
  double get(const At& at) const {
    return dispatch_floating("test", dtype_, [&]<class T>(Type<T>) {
      T value;
      std::memcpy(&value, bytes_.host().data() + offset(at) * sizeof(T), sizeof(T));
      return static_cast<double>(value);
    });
  }
  double get(std::initializer_list<int64_t> at) const {
    return get<std::initializer_list<int64_t>>(at);
  }
  void set(const std::vector<int64_t>& at, double value) {
    dispatch_floating("test", dtype_, [&]<class T>(Type<T>) {
      const T rounded(value);
      std::memcpy(bytes_.writable() + offset(at) * sizeof(T), &rounded, sizeof(T));
    });
  }
  // Fills with small integers (exact in every dtype and sum) or normal numbers.
  void randomize(uint32_t seed, bool integers) {
    std::mt19937 generator(seed);
    std::uniform_int_distribution<int> integer(-2, 2);
    std::normal_distribution<double> normal;
    std::byte* bytes = bytes_.writable();
    dispatch_floating("test", dtype_, [&]<class T>(Type<T>) {
      each([&](const std::vector<int64_t>& at) {
        const T rounded(integers ? integer(generator) : normal(generator));
        std::memcpy(bytes + offset(at) * static_cast<int64_t>(sizeof(T)), &rounded, sizeof(T));
      });
    });
  }
  template <class F>
  void each(F&& f) const {
    std::vector<int64_t> at(static_cast<size_t>(sizes_.size()), 0);
    for (int64_t i = 0, n = element_count(sizes_); i < n; ++i) {
      f(at);
      for (int d = sizes_.size() - 1; d >= 0; --d) {
        if (++at[static_cast<size_t>(d)] < sizes_[d]) {
          break;
        }
        at[static_cast<size_t>(d)] = 0;
      }
    }
  }
  // All elements in row-major order.
  std::vector<double> values() const {
    std::vector<double> values;
    values.reserve(static_cast<size_t>(element_count(sizes_)));
    const std::byte* bytes = bytes_.host().data();
    dispatch_floating("test", dtype_, [&]<class T>(Type<T>) {
      each([&](const std::vector<int64_t>& at) {
        T value;
        std::memcpy(&value, bytes + offset(at) * static_cast<int64_t>(sizeof(T)), sizeof(T));
        values.push_back(static_cast<double>(value));
      });
    });
    return values;
  }
  bool gaps_untouched() const {
    const size_t width = size_of(dtype_);
    for (size_t i = 0; i < used_.size(); ++i) {
      for (size_t b = 0; b < width && !used_[i]; ++b) {
        if (bytes()[i * width + b] != std::byte{0x5a}) {
          return false;
        }
      }
    }
    return true;
  }
  const std::vector<std::byte>& bytes() const { return bytes_.host(); }
  // The first element on the host, for access to whole structures of elements.
  template <class T>
  T* host_as() {
    return reinterpret_cast<T*>(bytes_.writable());
  }

 private:
  template <class At>
  int64_t offset(const At& at) const {
    int64_t sum = 0;
    int dim = 0;
    for (const int64_t i : at) {
      sum += i * strides_[dim++];
    }
    return sum;
  }

  DType dtype_;
  Dims sizes_, strides_;
  DeviceBytes bytes_;
  std::vector<bool> used_;
};

// Half a unit in the last place, relative: the error of one rounding to the dtype.
inline double unit_roundoff(DType dtype) { return epsilon(dtype) / 2; }

// Runs this test program again with these instruction sets if they are narrower; true if all pass.
// avx512, avx512_bf16 and amx_bf16 each multiply bf16 in a different way. By default only the
// baseline runs; the tests of scripts/test --all and of CI's stage isa set BINADE_TEST_ISAS=all.
inline bool passes_on_narrower_isas(const std::vector<const char*>& sets = {"avx2", "baseline"}) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) {
    return false;
  }
  path[length] = 0;
  const char* chosen = std::getenv("BINADE_TEST_ISAS");
  const bool all = chosen && std::string_view(chosen) == "all";
  for (const char* set : sets) {
    if (!all && std::string_view(set) != "baseline") {
      continue;
    }
    const std::string command = std::string("BINADE_FORCE_ISA=") + set + " '" + path +
                                "' --gtest_brief=1 --gtest_filter=-*NarrowerIsas*";
    if (std::system(command.c_str()) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace binade::kernels
