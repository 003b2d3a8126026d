// Statistics for measurements. Times are skewed and have outliers, so no distribution is assumed:
// only medians, order statistics and ranks are used.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace binade::bench {

// The value at position q (n - 1), interpolated. REQUIRES: values are not empty.
double quantile(std::vector<double> values, double q);
double median(const std::vector<double>& values);

// An interval of order statistics that contains the median of any distribution with probability
// `coverage` or more (David and Nagaraja, "Order Statistics", 7.1). Fewer than six samples cannot
// reach 0.95: then it is the whole range, with the coverage that it has.
struct MedianInterval {
  double low = 0, high = 0, coverage = 0;
};
MedianInterval median_interval(std::vector<double> values, double coverage = 0.95);

// Two-sided p-values. Zeros are left out, ties get the mean of their ranks, and the exact
// distribution is used (a normal distribution above 100 samples).
double wilcoxon_signed_rank(std::span<const double> differences);       // Wilcoxon (1945): around 0
double rank_sum(std::span<const double> a, std::span<const double> b);  // Mann and Whitney (1947)

// The median of all pairwise means (Hodges and Lehmann, 1963), an estimate of the shift from 0.
double hodges_lehmann(std::span<const double> differences);
// The median of all differences b - a.
double hodges_lehmann_shift(std::span<const double> a, std::span<const double> b);

// The least number of pairs with which an exact signed-rank test can give p <= `level`.
int pairs_for_level(double level);
// The smallest p-value that rank_sum() can give for so many samples, if the lists do not overlap.
double least_rank_sum(size_t a, size_t b);

}  // namespace binade::bench
