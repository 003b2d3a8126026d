// Sizes or strides of up to 8 dimensions, stored inline.
#pragma once
#include <binade/kernels/base/error.h>

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace binade {

inline constexpr int kMaxDims = 8;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values)
      : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    check_count(values.size());
    for (int64_t value : values) {
      values_[count_++] = value;
    }
  }
  // `count` dimensions, each of `value`.
  static Dims of(int count, int64_t value = 0) {
    check_count(static_cast<size_t>(count));
    Dims dims;
    dims.count_ = count;
    for (int i = 0; i < count; ++i) {
      dims.values_[i] = value;
    }
    return dims;
  }

  // No dimensions, as a constant expression.
  static constexpr Dims none() { return Dims(Zeroed{}); }

  int size() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t& operator[](int i) { return values_[i]; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t back() const { return values_[count_ - 1]; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + count_; }
  void push_back(int64_t value) {
    check_count(static_cast<size_t>(count_) + 1);
    values_[count_++] = value;
  }
  bool operator==(const Dims& other) const {
    if (count_ != other.count_) {
      return false;
    }
    for (int i = 0; i < count_; ++i) {
      if (values_[i] != other.values_[i]) {
        return false;
      }
    }
    return true;
  }

 private:
  struct Zeroed {};
  constexpr explicit Dims(Zeroed) : values_{} {}
  static void check_count(size_t count) {
    check(count <= kMaxDims, "got ", count, " dimensions, expected at most ", kMaxDims);
  }

  int64_t values_[kMaxDims];
  int32_t count_ = 0;
};

std::string to_string(const Dims& dims);  // "[2, 3]"
std::ostream& operator<<(std::ostream& out, const Dims& dims);

// Product of the sizes. Throws on a negative size or if the product exceeds 2^59, so that the
// number of bytes fits into 64 bits too. `op` names the caller in the error.
int64_t element_count(const Dims& sizes, const char* op = "tensor");

// Strides of a dense tensor whose last dimension is contiguous.
Dims row_major_strides(const Dims& sizes);

// Strides of a dense tensor [N, C, spatial...] with C innermost (NHWC for four dimensions).
Dims channels_last_strides(const Dims& sizes);

// True if the strides are those of a row-major tensor (dimensions of size 1 may have any stride).
bool is_row_major(const Dims& sizes, const Dims& strides);

// True if the elements fill a memory range without holes or overlap, in some order of dimensions.
bool is_dense(const Dims& sizes, const Dims& strides);

// True if sizes broadcast as in NumPy: equal or 1, aligned at the last dimension.
bool can_broadcast(const Dims& a, const Dims& b);
// Sizes after NumPy broadcasting of a and b. `op` names the caller in the error.
Dims broadcast_sizes(const char* op, const Dims& a, const Dims& b);

}  // namespace binade
