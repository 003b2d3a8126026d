// The sum of exponentials so far, for both backends.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/host_device.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace binade::kernels {

// The type in which elements of T are summed.
template <class T>
using LogSum = std::conditional_t<sizeof(T) == 2, float, double>;

// The largest x and the sum of exp(x - max). Without an element it is {-inf, 0}.
template <class C>
struct RunningLogSum {
  C max = -std::numeric_limits<C>::infinity(), sum = 0;

  BINADE_HD void add(C x) {
    if (x > max) {
      sum = sum * std::exp(max - x) + C(1);
      max = x;
    } else if (std::isnan(x)) {
      max = x;
    } else if (!std::isinf(max)) {  // else x does not count, and max - x can be NaN
      sum += std::exp(x - max);
    }
  }
  BINADE_HD C value() const { return std::isinf(max) ? max : max + std::log(sum); }
};

// exp(a - b), also 1 for equal infinities.
template <class C>
BINADE_HD C share_of(C a, C b) {
  return a == b ? C(1) : std::exp(a - b);
}

}  // namespace binade::kernels
