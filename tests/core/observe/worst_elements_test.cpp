// Compares the worst elements of each exponent with a plain sort of all elements.
#include <binade/core/observe/exponents.h>
#include <binade/core/observe/worst_elements.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/half.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace binade::worst_elements_test {
namespace {

// Values around those where f16 underflows and overflows, with zeros, infinities and NaN.
Tensor values_of_all_sizes(const Dims& sizes) {
  Tensor x = mul(randn(sizes), exp(mul(randn(sizes), 12)));
  float* at = x.data<float>();
  at[3] = 0;
  at[4] = INFINITY;
  at[5] = NAN;
  at[6] = 1e-40f;
  at[7] = -70000;
  return x;
}

int binade_of(float value) { return std::max(std::ilogb(value), -127); }

// All finite nonzero elements by exponent, the worst first; the true values are in f32.
std::map<int, std::vector<int64_t>> sorted_elements(const std::vector<float>& values) {
  const auto error = [&](int64_t i) {
    const double value = values[static_cast<size_t>(i)];
    const double f16 = static_cast<float>(half(values[static_cast<size_t>(i)]));
    return std::abs(f16 - value) / std::abs(value);
  };
  std::vector<int64_t> order;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0 && std::isfinite(values[i])) {
      order.push_back(static_cast<int64_t>(i));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double left = error(a), right = error(b);
    return left != right ? left > right
                         : std::abs(values[static_cast<size_t>(a)]) >
                               std::abs(values[static_cast<size_t>(b)]);
  });
  std::map<int, std::vector<int64_t>> all;
  for (const int64_t i : order) {
    all[binade_of(values[static_cast<size_t>(i)])].push_back(i);
  }
  return all;
}

TEST(WorstElements, AreThoseOfASort) {
  manual_seed(31);
  for (const double scale : {1.0, 0x1p10, 0x1p-4}) {
    const Dims sizes{7, 131, 67};  // more than one task
    const Tensor x = values_of_all_sizes(sizes);
    for (const int64_t equal : {10, 50, 30000, 60000}) {  // of equal ones the first are kept
      x.data<float>()[equal] = 1 + 0x1p-11f;
    }
    std::vector<float> values(x.data<float>(), x.data<float>() + x.numel());
    for (float& value : values) {
      value = static_cast<float>(value / scale);
    }
    WorstElements worst(3);
    worst.add(x.to(kernels::test_device()), scale);
    const auto expected = sorted_elements(values);
    ASSERT_EQ(worst.all().size(), expected.size());
    for (const auto& [exponent, elements] : worst.all()) {
      SCOPED_TRACE(text("scale ", scale, ", exponent ", exponent));
      const std::vector<int64_t>& order = expected.at(exponent);
      ASSERT_EQ(elements.size(), std::min<size_t>(3, order.size()));
      for (size_t k = 0; k < elements.size(); ++k) {
        const WorstElement& e = elements[k];
        const float value = values[static_cast<size_t>(order[k])];
        EXPECT_EQ(e.order, order[k]);
        EXPECT_EQ(e.place, (Dims{order[k] / (131 * 67), order[k] / 67 % 131, order[k] % 67}));
        EXPECT_EQ(e.value, value);
        EXPECT_EQ(e.in_f16, static_cast<float>(half(value)));
        EXPECT_EQ(e.in_bf16, static_cast<float>(bfloat16(value)));
      }
    }
  }
}

TEST(WorstElements, SeveralTensorsAndLayouts) {
  manual_seed(32);
  const Tensor x = values_of_all_sizes({6, 9}), y = values_of_all_sizes({9, 6});
  WorstElements one, both;
  one.add(transpose(x, 0, 1));
  for (const auto& [exponent, elements] : one.all()) {
    for (const WorstElement& e : elements) {
      EXPECT_EQ(e.place.size(), 2);
      EXPECT_EQ(e.value, x.data<float>()[e.place[1] * 9 + e.place[0]]);
    }
  }
  both.add(transpose(x, 0, 1));
  both.add(y);
  Tensor joined = cat({transpose(x, 0, 1), y}, 1);
  WorstElements of_joined;
  of_joined.add(joined);
  for (const auto& [exponent, elements] : of_joined.all()) {
    ASSERT_EQ(both.all().at(exponent).size(), elements.size());
    for (size_t k = 0; k < elements.size(); ++k) {
      EXPECT_EQ(std::abs(both.all().at(exponent)[k].value), std::abs(elements[k].value));
    }
  }
  WorstElements none(0), empty_tensor;
  none.add(x);
  empty_tensor.add(zeros({0, 3}));
  empty_tensor.add(zeros({2, 3}));
  EXPECT_TRUE(none.all().empty() && empty_tensor.all().empty());
  WorstElements scalar;
  scalar.add(full({}, 1.0001, DType::f64));
  EXPECT_EQ(scalar.all().at(0)[0].place.size(), 0);
}

}  // namespace
}  // namespace binade::worst_elements_test
