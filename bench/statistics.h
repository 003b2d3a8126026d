// The statistics of measurements. Times are skewed and have outliers, so nothing here assumes a
// distribution: medians, order statistics and ranks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace binade::bench {

// The value at position q (n - 1), with interpolation. REQUIRES: values are not empty.
double quantile(std::vector<double> values, double q);
double median(const std::vector<double>& values);

// An interval of order statistics that holds the median of the distribution with probability
// `coverage` or more, whatever the distribution is (David and Nagaraja, "Order Statistics", 7.1).
// Fewer than six samples cannot have 0.95: then all of them, with the coverage that they have.
struct MedianInterval {
  double low = 0, high = 0, coverage = 0;
};
MedianInterval median_interval(std::vector<double> values, double coverage = 0.95);

// Two-sided p-values. Zeros are left out, ties have the mean of their ranks, and the distribution
// of the statistic is enumerated (by a normal distribution above 100 samples).
double wilcoxon_signed_rank(std::span<const double> differences);       // Wilcoxon (1945): around 0
double rank_sum(std::span<const double> a, std::span<const double> b);  // Mann and Whitney (1947)

// The median of all pairwise means (Hodges and Lehmann, 1963): how far differences are from 0.
double hodges_lehmann(std::span<const double> differences);
// The median of all differences b - a.
double hodges_lehmann_shift(std::span<const double> a, std::span<const double> b);

// How many pairs an exact signed-rank test needs at least, so that it can give p <= `level`.
int pairs_for_level(double level);
// The smallest p-value that rank_sum() can give for so many samples: that of two lists apart.
double least_rank_sum(size_t a, size_t b);

}  // namespace binade::bench
