// Computes mean and variance per channel in double.
#pragma once
#include <binade/kernels/norm/batch_norm.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels {
namespace {

inline constexpr double kEps = 1e-5;

// The channel of every element of a tensor [N, C, ...] in logical order.
inline std::vector<size_t> channels_of(const Dims& sizes) {
  size_t inner = 1;
  for (int i = 2; i < sizes.size(); ++i) {
    inner *= static_cast<size_t>(sizes[i]);
  }
  std::vector<size_t> channels(static_cast<size_t>(element_count(sizes)));
  for (size_t i = 0; i < channels.size(); ++i) {
    channels[i] = i / inner % static_cast<size_t>(sizes[1]);
  }
  return channels;
}

struct Statistics {
  Values mean, variance;
};

inline Statistics statistics(const Values& x, const std::vector<size_t>& channel, size_t channels) {
  Statistics s{Values(channels), Values(channels)};
  const double count = static_cast<double>(x.size() / channels);
  for (size_t i = 0; i < x.size(); ++i) {
    s.mean[channel[i]] += x[i] / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - s.mean[channel[i]];
    s.variance[channel[i]] += d * d / count;
  }
  return s;
}

}  // namespace
}  // namespace binade::kernels
