// Gamma by Marsaglia and Tsang, "A simple method for generating gamma variables" (TOMS 2000), in
// logarithms, so that small parameters give no zeros.
#include <binade/data/augment/draws_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace binade::data::internal {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// In (0, 1).
double draw_open(philox::Stream& random) { return (double(random.next()) + 0.5) * 0x1p-32; }

// The logarithm of a draw.
double draw_log_gamma(philox::Stream& random, double alpha) {
  if (alpha < 1) {
    const double boost = std::log(draw_open(random)) / alpha;
    return draw_log_gamma(random, alpha + 1) + boost;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draw_normal(random), root = 1 + c * x;
    if (root <= 0) {
      continue;
    }
    const double v = root * root * root;
    if (std::log(draw_open(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

}  // namespace

void check_probability(const char* op, double p) {
  check(p >= 0 && p <= 1, op, ": got p ", p, ", expected 0 to 1");
}

double draw_uniform(philox::Stream& random, double low, double high) {
  return low + (high - low) * (double(random.next()) * 0x1p-32);
}

double draw_normal(philox::Stream& random) {
  const double radius = std::sqrt(-2 * std::log(draw_open(random)));
  return radius * std::cos(kTwoPi * draw_open(random));
}

double draw_gamma(philox::Stream& random, double alpha) {
  return std::exp(draw_log_gamma(random, alpha));
}

std::vector<double> draw_dirichlet(philox::Stream& random, double alpha, int count) {
  std::vector<double> draws(static_cast<size_t>(count));
  for (double& one : draws) {
    one = draw_log_gamma(random, alpha);
  }
  const double largest = *std::max_element(draws.begin(), draws.end());
  double sum = 0;
  for (double& one : draws) {
    one = std::exp(one - largest);
    sum += one;
  }
  for (double& one : draws) {
    one /= sum;
  }
  return draws;
}

double draw_beta(philox::Stream& random, double alpha) {
  return draw_dirichlet(random, alpha, 2)[0];
}

std::vector<size_t> draw_permutation(philox::Stream& random, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[random.next_below(static_cast<uint32_t>(i))]);
  }
  return order;
}

}  // namespace binade::data::internal
