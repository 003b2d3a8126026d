// Tests ExactSum: rounding, order, special values, and its words.
#include <binade/train/metrics/exact_sum_internal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace binade::train::exact_sum_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double x : numbers) {
    sum.add(x);
  }
  return sum.value();
}

TEST(ExactSum, KeepsWhatRoundingWouldLose) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1e300, 1, -1e300}), 1);
  EXPECT_EQ(sum_of({kMax, kMax, -kMax, -kMax, kLeast}), kLeast);
  EXPECT_EQ(sum_of({kMax, kMax, -kMax}), kMax);
  EXPECT_EQ(sum_of({kMax, kMax}), kInf);
  EXPECT_EQ(sum_of({-kMax, -kMax}), -kInf);
  EXPECT_EQ(sum_of({3 * kLeast, -kLeast}), 2 * kLeast);
  EXPECT_EQ(sum_of({-0x1p-1030, 0x1p-1074}), -(0x1p-1030 - 0x1p-1074));
}

TEST(ExactSum, RoundsOnceToNearestEven) {
  EXPECT_EQ(sum_of({0x1p53, 1}), 0x1p53);              // a tie, to even
  EXPECT_EQ(sum_of({0x1p53 + 2, 1}), 0x1p53 + 4);      // a tie, to even
  EXPECT_EQ(sum_of({0x1p53, 1, kLeast}), 0x1p53 + 2);  // above the tie by 2^-1074
  EXPECT_EQ(sum_of({-0x1p53, -1, -kLeast}), -(0x1p53 + 2));
  EXPECT_EQ(sum_of({0x1p53, 1, -kLeast}), 0x1p53);
  EXPECT_EQ(sum_of({0x1p53 + 2, 1, -kLeast}), 0x1p53 + 2);
}

TEST(ExactSum, IsTheSumOfIntegersOfEveryMagnitude) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    __int128 exact = 0;
    std::vector<double> numbers;
    for (int i = 0; i < 100; ++i) {
      const auto mantissa = static_cast<int64_t>(random() >> 11) * (random() % 2 ? 1 : -1);
      const int shift = static_cast<int>(random() % 60);
      exact += static_cast<__int128>(mantissa) << shift;
      numbers.push_back(std::ldexp(static_cast<double>(mantissa), shift - 40));
    }
    EXPECT_EQ(sum_of(numbers), std::ldexp(static_cast<double>(exact), -40));
  }
}

TEST(ExactSum, DoesNotDependOnOrderAndParts) {
  std::mt19937_64 random(2);
  std::vector<double> numbers;
  for (int i = 0; i < 2000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) {
      numbers.push_back(x / 4096);
    }
  }
  const double whole = sum_of(numbers);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    ASSERT_EQ(sum_of(numbers), whole);
    // Sums of three ranks are combined by adding their words.
    std::array<int64_t, ExactSum::kWords> all{};
    for (size_t rank = 0; rank < 3; ++rank) {
      ExactSum part;
      for (size_t i = rank; i < numbers.size(); i += 3) {
        part.add(numbers[i]);
      }
      const auto words = part.words();
      ASSERT_TRUE(ExactSum::are_words(words));
      std::transform(words.begin(), words.end(), all.begin(), all.begin(), std::plus<>());
    }
    ExactSum sum;
    sum.set_words(all);
    ASSERT_EQ(sum.value(), whole);
    ASSERT_TRUE(ExactSum::are_words(sum.words()));
  }
}

TEST(ExactSum, CarriesAfterManyAdditions) {
  ExactSum sum;
  constexpr int kCount = 3'000'000;
  for (int i = 0; i < kCount; ++i) {
    sum.add(-0x1.fffffffffffffp0);
  }
  EXPECT_EQ(sum.value(), -0x1.fffffffffffffp0 * kCount);  // one rounding as well
}

TEST(ExactSum, NeverHidesNaN) {
  EXPECT_TRUE(std::isnan(sum_of({1, std::nan(""), 2})));
  EXPECT_TRUE(std::isnan(sum_of({kInf, -kInf})));
  EXPECT_TRUE(std::isnan(sum_of({kInf, std::nan("")})));
  EXPECT_EQ(sum_of({kInf, -1e308}), kInf);
  EXPECT_EQ(sum_of({1, -kInf}), -kInf);
}

TEST(ExactSum, ProductsAreExact) {
  ExactSum sum;
  const double a = 1 + 0x1p-40, b = 1 - 0x1p-40;
  sum.add_product(a, b);  // 1 - 2^-80
  sum.add(-1);
  EXPECT_EQ(sum.value(), -0x1p-80);
}

TEST(ExactSum, RefusesWordsOfNoSum) {
  auto words = ExactSum().words();
  EXPECT_TRUE(ExactSum::are_words(words));
  words[3] = int64_t{1} << 32;
  EXPECT_FALSE(ExactSum::are_words(words));
  words[3] = -1;
  EXPECT_FALSE(ExactSum::are_words(words));
  words[3] = 0;
  words[ExactSum::kDigits] = -1;  // a count of NaN values
  EXPECT_FALSE(ExactSum::are_words(words));
  EXPECT_FALSE(ExactSum::are_words(std::span(words).subspan(1)));
}

}  // namespace
}  // namespace binade::train::exact_sum_test
