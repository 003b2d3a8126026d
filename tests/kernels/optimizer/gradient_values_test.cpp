// Clipping kernels against loops in double.
#include <binade/kernels/optimizer/gradient_values.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::gradient_values_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr size_t kSizes[] = {0, 1, 31, 257, 5001};

StridedArray tag_of(double value) { return make_array(DType::f64, {1}, {value}); }

StridedArray gradient(DType dtype, size_t count, const Values& special = {}) {
  Values values = random_values(count, 7);
  for (size_t i = 0; i < special.size() && i < count; ++i) {
    values[i * 13 % count] = special[i];
  }
  return make_array(dtype, {static_cast<int64_t>(count)}, values);
}

double norm(StridedArray& g, double p, double start, const View& tag) {
  StridedArray result = make_array(DType::f64, {1}, {start});
  gradient_norm({.grad = g.view(), .scale = 2, .tag = tag, .p = p, .result = result.view()});
  return values_of(result)[0];
}

TEST(GradientNorm, AddsPowersAndFindsTheLargest) {
  StridedArray tag = tag_of(4);
  for (DType dtype : floating_dtypes()) {
    for (size_t count : kSizes) {
      StridedArray g = gradient(dtype, count);
      for (double p : {1.0, 2.0, 3.5}) {
        double sum = 1;
        for (double value : values_of(g)) {
          sum += std::pow(std::abs(value) / 8, p);
        }
        EXPECT_NEAR(norm(g, p, 1, tag.view()), sum, 1e-12 * sum) << count << " p " << p;
      }
      double largest = 0;
      for (double value : values_of(g)) {
        largest = std::max(largest, std::abs(value) / 2);
      }
      EXPECT_EQ(norm(g, kInf, 0, kNoView), largest);
      EXPECT_EQ(norm(g, kInf, 99, kNoView), 99);
    }
    StridedArray bad = gradient(dtype, 300, {std::nan(""), kInf});
    EXPECT_TRUE(std::isnan(norm(bad, kInf, 0, kNoView)));
    EXPECT_TRUE(std::isnan(norm(bad, 2, 0, kNoView)));
    StridedArray infinite = gradient(dtype, 300, {-kInf});
    EXPECT_EQ(norm(infinite, kInf, 0, kNoView), kInf);
  }
}

TEST(ClampGradient, ClampsWhatIsFinite) {
  StridedArray tag = tag_of(0.25);
  for (DType dtype : floating_dtypes()) {
    for (size_t count : kSizes) {
      StridedArray g = gradient(dtype, count, {kInf, -kInf, std::nan("")});
      const Values before = values_of(g);
      clamp_gradient({.grad = g.view(), .scale = 2, .tag = tag.view(), .limit = 1});
      const Values after = values_of(g);
      for (size_t i = 0; i < count; ++i) {
        if (std::isnan(before[i])) {
          EXPECT_TRUE(std::isnan(after[i]));
        } else {
          const double expected =
              std::isinf(before[i]) ? before[i] : std::clamp(before[i], -0.5, 0.5);
          EXPECT_EQ(after[i], expected);
        }
      }
    }
  }
}

TEST(ReplaceNonFinite, OnlyWhereAsked) {
  const double largest[] = {std::numeric_limits<double>::max(), std::numeric_limits<float>::max(),
                            65504, 0x1.fep127};
  for (DType dtype : floating_dtypes()) {
    for (size_t count : kSizes) {
      StridedArray g = gradient(dtype, count, {kInf, -kInf, std::nan("")});
      const std::vector<std::byte> untouched = g.bytes();
      StridedArray when = tag_of(0);
      replace_non_finite({.grad = g.view(), .when = when.view()});
      EXPECT_EQ(g.bytes(), untouched);
      const Values before = values_of(g);
      replace_non_finite({.grad = g.view()});
      const Values after = values_of(g);
      for (size_t i = 0; i < count; ++i) {
        const double limit = std::copysign(largest[static_cast<int>(dtype)], before[i]);
        EXPECT_EQ(after[i], std::isfinite(before[i]) ? before[i]
                            : std::isnan(before[i])  ? 0
                                                     : limit);
      }
    }
  }
}

TEST(GradientValues, ErrorsNameTheProblem) {
  StridedArray g(DType::f32, {4});
  EXPECT_EQ(error_of([&] { norm(g, 0, 0, kNoView); }),
            "gradient_norm: got p = 0, expected a positive number or infinity");
  EXPECT_EQ(error_of([&] {
              clamp_gradient({g.view(), 1, kNoView, -1});
            }),
            "clamp_gradient: got limit = -1, expected a number >= 0");
  EXPECT_EQ(error_of([&] {
              clamp_gradient({g.view(), 1, g.view(), 1});
            }),
            "clamp_gradient: got tag f32 [4], expected a contiguous f64 [1]");
}

}  // namespace
}  // namespace binade::kernels::gradient_values_test
