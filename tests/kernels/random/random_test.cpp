// Tests random fills and dropout: the Philox sequence, statistics, and independence of layout,
// threads and instruction set.
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/philox.h>
#include <binade/kernels/random/draw.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::random_test {
namespace {

TEST(FillUniform, IsThePhiloxSequence) {
  for (uint64_t offset : {uint64_t(0), uint64_t(3), uint64_t(1) << 33}) {
    Array y(DType::f32, {3000});
    fill_uniform({.y = y.view(), .seed = 77, .offset = offset});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const uint64_t at = offset + static_cast<uint64_t>(i);
      ASSERT_EQ(y[i], philox::uniform(philox::generate(77, at / 4)[at % 4])) << i;
    }
  }
}

TEST(FillNormal, IsBoxMuller) {
  for (uint64_t offset : {uint64_t(0), uint64_t(1), uint64_t(6)}) {
    Array y(DType::f32, {3001});
    fill_normal({.y = y.view(), .mean = 1, .std = 2, .seed = 5, .offset = offset});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const uint64_t at = offset + static_cast<uint64_t>(i);
      const philox::Block block = philox::generate(5, at / 4);
      const size_t pair = at % 4 / 2 * 2;
      const double radius = std::sqrt(-2 * std::log(philox::uniform_positive(block[pair])));
      const double angle = 2 * M_PI * philox::uniform(block[pair + 1]);
      ASSERT_NEAR(y[i], 1 + 2 * radius * (at % 2 ? std::sin(angle) : std::cos(angle)), 5e-6) << i;
    }
  }
}

struct Moments {
  double mean = 0, deviation = 0, skew = 0, kurtosis = 0;
};
Moments moments(const Array& x) {
  Moments m;
  const auto n = static_cast<double>(x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    m.mean += x[i] / n;
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = x[i] - m.mean;
    m.deviation += d * d / n;
    m.skew += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.kurtosis /= m.deviation * m.deviation;
  m.deviation = std::sqrt(m.deviation);
  m.skew /= m.deviation * m.deviation * m.deviation;
  return m;
}

TEST(Random, Statistics) {
  constexpr int64_t kCount = 200000;
  for (DType dtype : floating_dtypes()) {
    Array x(dtype, {kCount});
    const double slack = 4 / std::sqrt(double(kCount)) + epsilon(dtype);
    fill_normal({.y = x.view(), .mean = 0, .std = 1, .seed = 1, .offset = 0});
    const Moments normal = moments(x);
    EXPECT_NEAR(normal.mean, 0, slack);
    EXPECT_NEAR(normal.deviation, 1, slack);
    EXPECT_NEAR(normal.skew, 0, 3 * slack);
    EXPECT_NEAR(normal.kurtosis, 3, 6 * slack);
    fill_uniform({.y = x.view(), .low = -2, .high = 4, .seed = 2, .offset = 0});
    const Moments uniform = moments(x);
    EXPECT_NEAR(uniform.mean, 1, 2 * slack);
    EXPECT_NEAR(uniform.deviation, 6 / std::sqrt(12), 2 * slack);
    EXPECT_NEAR(uniform.kurtosis, 1.8, 3 * slack);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_GE(x[i], -2);
      ASSERT_LE(x[i], 4);
    }
  }
}

TEST(Random, LayoutAndThreadsDoNotMatter) {
  for (DType dtype : floating_dtypes()) {
    for (const Dims& sizes : {Dims{}, Dims{0, 2}, Dims{4, 9, 6, 50}, Dims{30000}}) {
      Array base(dtype, sizes), x(dtype, sizes), dropped(dtype, sizes);
      x.random(1);
      set_threads(1);
      fill_normal({.y = base.view(), .seed = 9, .offset = 5});
      dropout({.x = x.view(), .y = dropped.view(), .p = 0.3, .seed = 9, .offset = 5});
      for (int count : {2, 4}) {
        set_threads(count);
        for (Layout layout : kOutputLayouts) {
          Array y(dtype, sizes, layout), z(dtype, sizes, layout);
          fill_normal({.y = y.view(), .seed = 9, .offset = 5});
          z.random(1);
          dropout({.x = z.view(), .y = z.view(), .p = 0.3, .seed = 9, .offset = 5});
          ASSERT_TRUE(y.gaps_untouched() && z.gaps_untouched());
          for (int64_t i = 0; i < y.numel(); ++i) {
            ASSERT_EQ(y[i], base[i]);
            ASSERT_EQ(z[i], dropped[i]);
          }
        }
      }
      set_threads(0);
    }
  }
}

TEST(Dropout, ForwardAndBackwardAgree) {
  Array x(DType::f32, {100000}), y(DType::f32, {100000}), dx(DType::f32, {100000}, Layout::step2);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.set(i, 1);
  }
  for (double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    dropout({.x = x.view(), .y = y.view(), .p = p, .seed = 4, .offset = 12});
    dropout({.x = x.view(), .y = dx.view(), .p = p, .seed = 4, .offset = 12});
    int64_t kept = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      ASSERT_EQ(y[i], dx[i]);
      ASSERT_TRUE(y[i] == 0 || y[i] == static_cast<float>(1 / (1 - p)));
      kept += y[i] != 0;
    }
    EXPECT_NEAR(static_cast<double>(kept) / 1e5, 1 - p, 4 * std::sqrt(p * (1 - p) / 1e5));
  }
}

TEST(RandomIntegers, AreTheTopOfAProduct) {
  for (uint64_t range : {uint64_t(1), uint64_t(10), (uint64_t(1) << 33) + 7, uint64_t(1) << 63,
                         ~uint64_t(0), uint64_t(0)}) {
    for (int64_t numel : {int64_t(0), int64_t(1), int64_t(3001)}) {
      Array y(DType::i64, {numel});
      const int64_t low = range <= uint64_t(1) << 34 ? -5 : INT64_MIN;
      random_integers({.y = y.view(), .low = low, .range = range, .seed = 9, .offset = 16});
      const std::vector<std::byte> bytes = y.bytes();
      for (int64_t i = 0; i < numel; ++i) {
        const auto at = static_cast<uint64_t>(16 + 2 * i);
        const philox::Block block = philox::generate(9, at / 4);
        const uint64_t w = uint64_t(block[at % 4]) << 32 | block[at % 4 + 1];
        const auto drawn =
            range ? static_cast<uint64_t>(static_cast<unsigned __int128>(w) * range >> 64) : w;
        int64_t value;
        std::memcpy(&value, &bytes[static_cast<size_t>(i) * 8], 8);
        ASSERT_EQ(static_cast<uint64_t>(value), static_cast<uint64_t>(low) + drawn) << i;
      }
    }
  }
}

TEST(Bernoulli, ComparesOneNumberPerElement) {
  for (DType dtype : floating_dtypes()) {
    Array p(dtype, {1003}), y(dtype, {1003});
    for (int64_t i = 0; i < p.numel(); ++i) {
      p.set(i, static_cast<double>(i % 5) / 4);
    }
    bernoulli({.p = p.view(), .y = y.view(), .seed = 3, .offset = 8});
    for (int64_t i = 0; i < p.numel(); ++i) {
      const auto at = static_cast<uint64_t>(8 + i);
      ASSERT_EQ(y[i], philox::generate(3, at / 4)[at % 4] < 0x1p32 * p[i] ? 1 : 0) << i;
    }
  }
}

TEST(ChooseWeighted, SearchesTheSums) {
  // The sums of row 1 look like those of a device that rounds differently: class 1 has weight 0 but
  // a share of the sums.
  Array weights(DType::f64, {2, 4}), sums(DType::f64, {2, 4}), at(DType::f64, {2, 5}),
      y(DType::i64, {2, 5});
  const double w[] = {0, 1, 2, 1, 1, 0, 2, 1}, s[] = {0, 1, 3, 4, 1, 1.5, 3, 4};
  const double u[] = {1e-9, 0.25, 0.2501, 0.7499, 0.9999};
  for (int64_t i = 0; i < 8; ++i) {
    weights.set(i, w[i]);
    sums.set(i, s[i]);
  }
  for (int64_t i = 0; i < 10; ++i) {
    at.set(i, u[i % 5]);
  }
  choose_weighted({.weights = weights.view(), .sums = sums.view(), .at = at.view(), .y = y.view()});
  const double expected[] = {1, 2, 2, 2, 3, 0, 0, 0, 2, 3};
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(y[i], expected[i]) << i;
  }
}

TEST(Random, BadArgumentsAreErrors) {
  Array p(DType::f32, {2}), z(DType::f32, {2}), integers(DType::i64, {2}), wide(DType::f64, {2, 2});
  EXPECT_THROW(random_integers({.y = p.view(), .range = 1, .seed = 0, .offset = 0}), Error);
  EXPECT_THROW(random_integers({.y = integers.view(), .range = 1, .seed = 0, .offset = 4}), Error);
  EXPECT_THROW(bernoulli({.p = p.view(), .y = integers.view(), .seed = 0, .offset = 0}), Error);
  EXPECT_THROW(
      choose_weighted(
          {.weights = wide.view(), .sums = wide.view(), .at = wide.view(), .y = wide.view()}),
      Error);

  Array x(DType::f32, {3}), y(DType::f64, {3}), i(DType::i64, {3});
  EXPECT_THROW(fill_normal({.y = i.view(), .seed = 0, .offset = 0}), Error);
  EXPECT_THROW(dropout({x.view(), y.view(), 0.5, 0, 0}), Error);
  EXPECT_THROW(dropout({x.view(), x.view(), 1.5, 0, 0}), Error);
  EXPECT_THROW(dropout({x.view(), x.view(), NAN, 0, 0}), Error);
}

// An FNV-1a hash of a normal fill, equal for every instruction set. A device has its own logarithms
// and sines (FillNormal.IsBoxMuller compares its values), but its bits repeat.
TEST(Random, BitsDoNotDependOnTheInstructionSet) {
  Array y(DType::f32, {5000});
  fill_normal({.y = y.view(), .seed = 3, .offset = 1});
  if (!test_device().is_cpu()) {
    Array again(DType::f32, {5000});
    fill_normal({.y = again.view(), .seed = 3, .offset = 1});
    ASSERT_EQ(y.bytes(), again.bytes());
    return;
  }
  uint64_t hash = 1469598103934665603u;
  for (std::byte b : y.bytes()) {
    hash = (hash ^ static_cast<uint64_t>(b)) * 1099511628211u;
  }
  EXPECT_EQ(hash, 14778236826188160383u);
}

TEST(NarrowerIsas, RandomPasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::random_test
