// Random numbers of several distributions, from a stream of Philox, and the check of a probability.
// Internal to data.
#pragma once
#include <binade/kernels/base/philox.h>

#include <cstddef>
#include <vector>

namespace binade::data::internal {

// Throws an Error that names `op` unless p is from 0 to 1.
void check_probability(const char* op, double p);

// Uniform in [low, high), from 32 bits.
double draw_uniform(philox::Stream& random, double low, double high);
double draw_normal(philox::Stream& random);
// A gamma variate with shape `alpha` > 0 and scale 1.
double draw_gamma(philox::Stream& random, double alpha);
// A Dirichlet variate with `count` equal parameters `alpha`; it sums to 1.
std::vector<double> draw_dirichlet(philox::Stream& random, double alpha, int count);
// Beta(alpha, alpha), in [0, 1].
double draw_beta(philox::Stream& random, double alpha);

// 0 ... count - 1 in a random order.
std::vector<size_t> draw_permutation(philox::Stream& random, size_t count);

}  // namespace binade::data::internal
