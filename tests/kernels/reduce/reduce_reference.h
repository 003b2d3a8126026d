// Reductions and their gradients in double, in two passes over the elements of each result.
#pragma once
#include <binade/kernels/reduce/reduce.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/layouts.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace binade::kernels {
namespace {

using Sequence = std::vector<double>;

// The elements of x that are reduced to each element of a result with these sizes.
inline std::vector<Sequence> sequences(const Array& x, const Dims& sizes, const Dims& y_sizes) {
  std::vector<Sequence> all(static_cast<size_t>(element_count(y_sizes)));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, target = 0, scale = 1;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      target += y_sizes[d] == 1 ? 0 : rest % sizes[d] * scale;
      scale *= y_sizes[d];
      rest /= sizes[d];
    }
    all[static_cast<size_t>(target)].push_back(x[i]);
  }
  return all;
}

struct Expected {
  double y, aux;
};

inline Expected moments(Reduce op, const Sequence& x, double correction) {
  long double mean = 0, squares = 0;  // in double, a constant line would have a deviation
  for (double v : x) {
    mean += v;
  }
  mean /= static_cast<long double>(x.size());
  for (double v : x) {
    squares += (v - mean) * (v - mean);
  }
  const auto divisor = std::max(0.0, static_cast<double>(x.size()) - correction);
  const double variance = static_cast<double>(squares / divisor);
  return {op == Reduce::std ? std::sqrt(variance) : variance, static_cast<double>(mean)};
}

inline Expected product(const Sequence& x) {
  double all = 1, others = 1;
  for (double v : x) {
    all *= v;
    others *= v == 0 ? 1 : v;
  }
  return {all, std::count(x.begin(), x.end(), 0) == 1 ? others : 0};
}

inline Expected extreme(Reduce op, const Sequence& x) {
  const auto term = [&](double v) { return op == Reduce::norm_inf ? std::fabs(v) : v; };
  double y = term(x[0]);
  for (double v : x) {
    y = op == Reduce::min ? std::min(y, v) : std::max(y, term(v));
  }
  return {y, static_cast<double>(
                 std::count_if(x.begin(), x.end(), [&](double v) { return term(v) == y; }))};
}

inline Expected reference(Reduce op, const Sequence& x, double correction) {
  double sum = 0;
  switch (op) {
    case Reduce::var:
    case Reduce::std: return moments(op, x, correction);
    case Reduce::prod: return product(x);
    case Reduce::norm1:
      for (double v : x) {
        sum += std::fabs(v);
      }
      return {sum, 0};
    case Reduce::norm2:
      for (double v : x) {
        sum += v * v;
      }
      return {std::sqrt(sum), 0};
    case Reduce::logsumexp: {
      const double top = *std::max_element(x.begin(), x.end());
      for (double v : x) {
        sum += std::exp(v - top);
      }
      return {top + std::log(sum), 0};
    }
    default: return extreme(op, x);
  }
}

inline double slope(ReduceSlope op, double x, double a, double b) {
  const double sign = (x > 0) - (x < 0);
  switch (op) {
    case ReduceSlope::deviation: return a * (x - b);
    case ReduceSlope::sign: return a * sign;
    case ReduceSlope::equal: return x == b || (std::isnan(x) && std::isnan(b)) ? a : 0;
    case ReduceSlope::equal_or_nan: return x == b ? a : std::isnan(b) ? b : 0;
    case ReduceSlope::direction: return b != 0 ? a * (x / b) : 0;
    case ReduceSlope::equal_abs: return std::fabs(x) == b ? a * sign : 0;
    case ReduceSlope::exponential: return a * std::exp(x - b);
    default: return x != 0 ? a / x : b;
  }
}

}  // namespace
}  // namespace binade::kernels
