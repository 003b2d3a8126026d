// Arrays of any dtype in the layouts that pointwise kernels must support, read and written as
// double in row-major logical order. Memory between the elements holds a canary.
#pragma once
#include <binade/kernels/base/view.h>
#include <tests/kernels/support/device_bytes.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace binade::kernels {

enum class Layout {
  contiguous,
  transposed,
  step2,
  offset,
  channels_last,
  padded,
  same_rows,
  same_columns
};
inline constexpr Layout kOutputLayouts[] = {Layout::contiguous,    Layout::transposed,
                                            Layout::step2,         Layout::offset,
                                            Layout::channels_last, Layout::padded};
// The last two have stride 0 in the first or last dimension, so they are only for inputs.
inline constexpr Layout kInputLayouts[] = {
    Layout::contiguous,    Layout::transposed, Layout::step2,     Layout::offset,
    Layout::channels_last, Layout::padded,     Layout::same_rows, Layout::same_columns};

inline const std::vector<Dims>& test_shapes() {
  static const std::vector<Dims> shapes = {
      {}, {1}, {7}, {0, 3}, {5, 1}, {33, 70}, {2, 3, 5}, {2, 9, 6, 5}, {3, 2, 1, 4, 5}, {2, 2100}};
  return shapes;
}

class Array {
 public:
  // `start` canary elements precede the first element.
  Array(DType dtype, const Dims& sizes, Layout layout = Layout::contiguous, int64_t start = 0)
      : dtype_(dtype), sizes_(sizes), strides_(row_major_strides(sizes)) {
    const int rank = sizes.size();
    if (layout == Layout::transposed) {
      int64_t stride = 1;
      for (int d = 0; d < rank; ++d) {
        strides_[d] = stride;
        stride *= sizes[d];
      }
    } else if (layout == Layout::channels_last && rank >= 3) {
      strides_ = channels_last_strides(sizes);
    } else if (layout == Layout::padded) {
      int64_t stride = 1;
      for (int d = rank - 1; d >= 0; --d) {
        strides_[d] = stride;
        stride = stride * sizes[d] + 3;
      }
    } else if (layout == Layout::step2) {
      for (int d = 0; d < rank; ++d) {
        strides_[d] *= 2;
      }
    } else if (layout == Layout::same_rows && rank > 0) {
      strides_[0] = 0;
    } else if (layout == Layout::same_columns && rank > 0) {
      strides_[rank - 1] = 0;
    }
    first_ = layout == Layout::offset ? 5 : start;
    int64_t last = first_;
    for (int d = 0; d < rank; ++d) {
      last += (sizes[d] > 0 ? sizes[d] - 1 : 0) * strides_[d];
    }
    bytes_ = DeviceBytes(
        std::vector<std::byte>(static_cast<size_t>(last + 1) * size_of(dtype), std::byte{0x5a}));
    used_.assign(static_cast<size_t>(last + 1), false);
    for (int64_t i = 0; i < numel(); ++i) {
      used_[static_cast<size_t>(offset(i))] = true;
    }
  }

  int64_t numel() const { return element_count(sizes_); }
  View view() {
    return on_test_device(view_of(bytes_.device() + static_cast<size_t>(first_) * size_of(dtype_),
                                  dtype_, sizes_, strides_));
  }
  double operator[](int64_t i) const {
    return dispatch("test", dtype_, [&]<class T>(Type<T>) {
      T value;
      std::memcpy(&value, bytes_.host().data() + static_cast<size_t>(offset(i)) * sizeof(T),
                  sizeof(T));
      return static_cast<double>(value);
    });
  }
  void set(int64_t i, double value) {
    dispatch("test", dtype_, [&]<class T>(Type<T>) {
      const T rounded(value);
      std::memcpy(bytes_.writable() + static_cast<size_t>(offset(i)) * sizeof(T), &rounded,
                  sizeof(T));
    });
  }
  Array& random(uint32_t seed, double low = -3, double high = 3) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(low, high);
    for (int64_t i = 0; i < numel(); ++i) {
      set(i, uniform(generator));
    }
    return *this;
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

 private:
  int64_t offset(int64_t index) const {
    int64_t sum = first_;
    for (int d = sizes_.size() - 1; d >= 0; --d) {
      sum += index % sizes_[d] * strides_[d];
      index /= sizes_[d];
    }
    return sum;
  }

  DType dtype_;
  Dims sizes_, strides_;
  int64_t first_;
  DeviceBytes bytes_;
  std::vector<bool> used_;
};

inline std::string describe(DType dtype, const Dims& sizes, Layout layout) {
  return text(dtype, " ", sizes, " layout ", static_cast<int>(layout));
}

}  // namespace binade::kernels
