#include <bench/statistics.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace binade::bench {
namespace {

constexpr size_t kMostEnumerated = 100;

double two_sided_normal(double z) { return std::erfc(std::fabs(z) / std::sqrt(2.0)); }

// Twice the rank of each value, so that the mean of tied ranks is an integer.
std::vector<int64_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<int64_t> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<int64_t>(begin + 1 + end);
    }
    begin = end;
  }
  return ranks;
}

// The probability of a sum that is at least as far from its mean as `observed`.
double tail_of(const std::vector<double>& weights, int64_t observed, double mean) {
  double total = 0, outside = 0;
  const double distance = std::fabs(static_cast<double>(observed) - mean);
  for (size_t sum = 0; sum < weights.size(); ++sum) {
    total += weights[sum];
    if (std::fabs(static_cast<double>(sum) - mean) >= distance - 1e-9) {
      outside += weights[sum];
    }
  }
  return std::min(1.0, outside / total);
}

std::vector<double> without_zeros(std::span<const double> differences) {
  std::vector<double> kept;
  std::ranges::copy_if(differences, std::back_inserter(kept), [](double d) { return d != 0; });
  return kept;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

MedianInterval median_interval(std::vector<double> values, double coverage) {
  std::ranges::sort(values);
  const auto n = static_cast<int>(values.size());
  // P(fewer than k of n samples are below the median), as k grows.
  double term = std::pow(0.5, n), below = 0;
  int rank = 0;
  double reached = 1 - 2 * term;  // coverage of the whole range
  for (int k = 0; k < n / 2; ++k) {
    below += term;
    if (1 - 2 * below < coverage) {
      break;
    }
    rank = k;
    reached = 1 - 2 * below;
    term *= static_cast<double>(n - k) / (k + 1);
  }
  return {values[static_cast<size_t>(rank)], values[static_cast<size_t>(n - 1 - rank)],
          std::max(0.0, reached)};
}

double wilcoxon_signed_rank(std::span<const double> differences) {
  const std::vector<double> kept = without_zeros(differences);
  if (kept.empty()) {
    return 1;
  }
  std::vector<double> sizes(kept.size());
  std::ranges::transform(kept, sizes.begin(), [](double d) { return std::fabs(d); });
  const std::vector<int64_t> ranks = doubled_ranks(sizes);
  const int64_t all = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  int64_t positive = 0;
  double squares = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    positive += kept[i] > 0 ? ranks[i] : 0;
    squares += static_cast<double>(ranks[i]) * static_cast<double>(ranks[i]);
  }
  const double mean = static_cast<double>(all) / 2;
  if (kept.size() > kMostEnumerated) {
    return two_sided_normal((static_cast<double>(positive) - mean) / std::sqrt(squares / 4));
  }
  std::vector<double> ways(static_cast<size_t>(all) + 1);  // number of sign choices for each sum
  ways[0] = 1;
  for (const int64_t rank : ranks) {
    for (auto sum = static_cast<int64_t>(ways.size()) - 1; sum >= rank; --sum) {
      ways[static_cast<size_t>(sum)] += ways[static_cast<size_t>(sum - rank)];
    }
  }
  return tail_of(ways, positive, mean);
}

double rank_sum(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) {
    return 1;
  }
  std::vector<double> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  const std::vector<int64_t> ranks = doubled_ranks(values);
  const int64_t all = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  const int64_t observed = std::accumulate(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), int64_t{0});
  const auto n = static_cast<double>(values.size()), n_a = static_cast<double>(a.size());
  const double center = static_cast<double>(all) / n, mean = n_a * center;
  if (values.size() > kMostEnumerated) {
    double squares = 0;
    for (const int64_t rank : ranks) {
      squares += (static_cast<double>(rank) - center) * (static_cast<double>(rank) - center);
    }
    const double variance = n_a * (n - n_a) / (n * (n - 1)) * squares;
    return variance > 0
               ? two_sided_normal((static_cast<double>(observed) - mean) / std::sqrt(variance))
               : 1;
  }
  // ways[k][sum] is the number of choices of k ranks with this sum.
  std::vector<std::vector<double>> ways(a.size() + 1,
                                        std::vector<double>(static_cast<size_t>(all) + 1));
  ways[0][0] = 1;
  for (const int64_t rank : ranks) {
    for (size_t k = a.size(); k >= 1; --k) {
      for (auto sum = all; sum >= rank; --sum) {
        ways[k][static_cast<size_t>(sum)] += ways[k - 1][static_cast<size_t>(sum - rank)];
      }
    }
  }
  return tail_of(ways[a.size()], observed, mean);
}

double hodges_lehmann(std::span<const double> differences) {
  std::vector<double> means;
  for (size_t i = 0; i < differences.size(); ++i) {
    for (size_t j = i; j < differences.size(); ++j) {
      means.push_back((differences[i] + differences[j]) / 2);
    }
  }
  return means.empty() ? 0 : median(means);
}

double hodges_lehmann_shift(std::span<const double> a, std::span<const double> b) {
  std::vector<double> shifts;
  for (const double before : a) {
    for (const double after : b) {
      shifts.push_back(after - before);
    }
  }
  return shifts.empty() ? 0 : median(shifts);
}

int pairs_for_level(double level) {
  int pairs = 1;
  while (std::pow(0.5, pairs - 1) > level && pairs < 60) {
    ++pairs;
  }
  return pairs;
}

double least_rank_sum(size_t a, size_t b) {
  double p = 2;  // probability that the two lists do not overlap
  for (size_t i = 1; i <= a; ++i) {
    p *= static_cast<double>(i) / static_cast<double>(b + i);
  }
  return std::min(1.0, p);
}

}  // namespace binade::bench
