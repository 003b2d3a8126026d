// Values of a StridedArray in logical (row-major) order, layouts to test with, and comparison.
#pragma once
#include <binade/kernels/base/parallel.h>
#include <tests/kernels/support/strided_array.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tests/support/error_of.h>

namespace binade::kernels {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

struct ArrayLayout {
  const char* name;
  std::vector<int> order;
  int64_t gap;
};
inline std::vector<ArrayLayout> image_layouts() {
  return {{"row-major", {0, 1, 2, 3}, 0},
          {"channels-last", {0, 2, 3, 1}, 0},
          {"channels-last with a gap", {0, 2, 3, 1}, 3},
          {"transposed", {3, 1, 2, 0}, 1}};
}

inline Values random_values(size_t count, uint32_t seed, double mean = 0, double deviation = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Values values(count);
  for (double& value : values) {
    value = normal(generator);
  }
  return values;
}

inline void assign(StridedArray& array, const Values& values) {
  size_t i = 0;
  array.each([&](const std::vector<int64_t>& at) { array.set(at, values[i++]); });
}

inline Values values_of(const StridedArray& array) {
  Values values;
  array.each([&](const std::vector<int64_t>& at) { values.push_back(array.get(at)); });
  return values;
}

inline StridedArray make_array(DType dtype, const Dims& sizes, const Values& values,
                               const std::vector<int>& order = {}, int64_t gap = 0) {
  StridedArray array(dtype, sizes, order, gap);
  assign(array, values);
  return array;
}

// Compares within `units` roundings of the dtype and its compute type, relative to the largest
// value, or to `scale` if cancellation may make results smaller than their terms.
inline void expect_close(const StridedArray& got, DType dtype, const Values& expected, double units,
                         const std::string& what, double scale = 0) {
  const Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (double value : expected) {
    scale = std::isfinite(value) ? std::max(scale, std::abs(value)) : scale;
  }
  const double tolerance = scale * (epsilon(dtype) + units * epsilon(compute_dtype(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(expected[i])) {
      ASSERT_NEAR(values[i], expected[i], tolerance)
          << what << " " << to_string(dtype) << " element " << i;
    } else {
      ASSERT_TRUE(values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i])))
          << what << " element " << i << ": " << values[i] << ", expected " << expected[i];
    }
  }
  EXPECT_TRUE(got.gaps_untouched()) << what;
}

// Calls `run` with 1, 2 and 4 threads; the bytes of the results that it returns must not change.
inline void expect_thread_invariant(const std::function<std::vector<std::byte>()>& run) {
  set_threads(1);
  const std::vector<std::byte> serial = run();
  for (int count : {2, 4}) {
    set_threads(count);
    EXPECT_EQ(run(), serial) << count << " threads";
  }
  set_threads(0);
}

inline void append(std::vector<std::byte>& all, const StridedArray& array) {
  all.insert(all.end(), array.bytes().begin(), array.bytes().end());
}

}  // namespace binade::kernels
