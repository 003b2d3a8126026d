// Count, mean and sum of squared deviations from the mean, and a way to merge those of two samples
// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979). Every norm and variance merges its partial results this way.
#pragma once
#include <binade/kernels/base/host_device.h>

namespace binade::kernels {

template <class C>
struct Moments {
  C count = 0, mean = 0, deviations = 0;

  // Merging an empty sample changes nothing, even if the square of the other mean overflows.
  [[gnu::always_inline]] BINADE_HD Moments merge(const Moments& other) const {
    const C total = count + other.count, delta = other.mean - mean;
    const C share = other.count / total;
    const Moments both{total, mean + delta * share,
                       deviations + other.deviations + delta * delta * count * share};
    return other.count == C(0) ? *this : count == C(0) ? other : both;
  }
};

}  // namespace binade::kernels
