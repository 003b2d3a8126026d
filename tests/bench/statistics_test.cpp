// The statistics of binade bench against values that are known: counted by hand, or R's.
#include <bench/statistics.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace binade::bench::statistics_test {
namespace {

TEST(Statistics, Quantiles) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(quantile({0, 10, 20, 30, 40}, 0.25), 10);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.1), 1);
}

// For n = 10 the 2nd and 9th cover 1 - 2 (1 + 10) / 1024 = 0.9785, the 3rd and 8th 0.891.
TEST(Statistics, IntervalOfTheMedian) {
  const MedianInterval ten = median_interval({9, 0, 1, 8, 2, 7, 3, 6, 4, 5});
  EXPECT_DOUBLE_EQ(ten.low, 1);
  EXPECT_DOUBLE_EQ(ten.high, 8);
  EXPECT_DOUBLE_EQ(ten.coverage, 1 - 22.0 / 1024);
  const MedianInterval six = median_interval({1, 2, 3, 4, 5, 6});
  EXPECT_DOUBLE_EQ(six.low, 1);
  EXPECT_DOUBLE_EQ(six.high, 6);
  EXPECT_DOUBLE_EQ(six.coverage, 1 - 2.0 / 64);
  const MedianInterval three = median_interval({1, 2, 3});
  EXPECT_DOUBLE_EQ(three.low, 1);
  EXPECT_DOUBLE_EQ(three.coverage, 0.75);
  EXPECT_DOUBLE_EQ(median_interval({5}).coverage, 0);
}

// It holds the median in 95 of 100 cases or more, also of a skewed distribution.
TEST(Statistics, IntervalsHoldTheMedian) {
  std::mt19937 generator(1);
  std::exponential_distribution<double> times(1);
  int held = 0;
  for (int run = 0; run < 2000; ++run) {
    std::vector<double> values(17);
    for (double& value : values) {
      value = times(generator);
    }
    const MedianInterval interval = median_interval(values);
    held += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high;
  }
  EXPECT_GE(held, 1870);
  EXPECT_LE(held, 1940);  // 0.951 is expected, with a deviation of 10
}

TEST(Statistics, SignedRanks) {
  // All n positive: 2 / 2^n.
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5}), 2.0 / 32);
  // Sum of positive ranks 14 of 15: 14 and 15, and 0 and 1: 4 / 32.
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{-1, 2, 3, 4, 5}), 4.0 / 32);
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{-1, 1}), 1);
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{0, 0}), 1);
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{}), 1);
  // The depression scores of Hollander and Wolfe (1973), as in R's wilcox.test: V = 40, p =
  // 0.03906.
  const std::vector<double> hollander{0.952, -0.147, 1.022,  0.430, 0.620,
                                      0.590, 0.490,  -0.080, 0.010};
  EXPECT_NEAR(wilcoxon_signed_rank(hollander), 0.0390625, 1e-9);
  // Ties: |d| = 1 1 2 2 3 with ranks 1.5 1.5 3.5 3.5 5; W+ = 13.5 of 15, and 6 of 32 sums are as
  // far.
  EXPECT_DOUBLE_EQ(wilcoxon_signed_rank(std::vector<double>{-1, 1, 2, 2, 3}), 6.0 / 32);
}

TEST(Statistics, SignedRanksOfManyFollowTheNormalDistribution) {
  std::vector<double> differences;
  for (int i = 1; i <= 100; ++i) {
    differences.push_back(i % 3 == 0 ? -i : i);
  }
  const double enumerated = wilcoxon_signed_rank(differences);
  differences.push_back(1e-9);  // 101: by the normal distribution
  EXPECT_NEAR(wilcoxon_signed_rank(differences) / enumerated, 1, 0.1);
}

TEST(Statistics, RankSums) {
  // 3 and 3 apart: 2 of C(6, 3) = 20.
  EXPECT_DOUBLE_EQ(rank_sum(std::vector<double>{1, 2, 3}, std::vector<double>{4, 5, 6}), 0.1);
  EXPECT_DOUBLE_EQ(rank_sum(std::vector<double>{1, 1}, std::vector<double>{1, 1}), 1);
  EXPECT_DOUBLE_EQ(rank_sum(std::vector<double>{}, std::vector<double>{1}), 1);
  // wilcox.test(c(0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46),
  //             c(1.15, 0.88, 0.90, 0.74, 1.21)): W = 35, p = 0.2544 (Hollander and Wolfe).
  EXPECT_NEAR(
      rank_sum(std::vector<double>{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
               std::vector<double>{1.15, 0.88, 0.90, 0.74, 1.21}),
      0.2544, 5e-5);
}

TEST(Statistics, HodgesLehmann) {
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector<double>{1, 2, 30}), 8.75);  // of 1 1.5 2 15.5 16 30
  EXPECT_DOUBLE_EQ(hodges_lehmann_shift(std::vector<double>{1, 2}, std::vector<double>{3, 5}), 2.5);
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector<double>{}), 0);
}

TEST(Statistics, PairsThatALevelNeeds) {
  EXPECT_EQ(pairs_for_level(0.05), 6);
  EXPECT_EQ(pairs_for_level(0.01), 8);
  EXPECT_EQ(pairs_for_level(1), 1);
}

TEST(Statistics, TheLeastPOfRankSums) {
  EXPECT_DOUBLE_EQ(least_rank_sum(3, 3), 0.1);
  EXPECT_DOUBLE_EQ(least_rank_sum(2, 5), 2.0 / 21);
  EXPECT_DOUBLE_EQ(least_rank_sum(1, 1), 1);
  EXPECT_DOUBLE_EQ(least_rank_sum(0, 4), 1);
  EXPECT_EQ(least_rank_sum(2000, 2000), 0);  // below the smallest number
  const std::vector<double> low{1, 2, 3, 4}, high{5, 6, 7, 8, 9};
  EXPECT_DOUBLE_EQ(least_rank_sum(4, 5), rank_sum(low, high));
}

}  // namespace
}  // namespace binade::bench::statistics_test
