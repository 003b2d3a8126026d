// A weighted mean of two elements, for both backends.
#pragma once
#include <binade/kernels/base/host_device.h>

namespace binade::kernels {

// (1 - weight) low + weight high. A weight of 0 or 1 leaves an element out, even an infinity.
template <class C>
BINADE_HD C blend(C low, C high, C weight) {
  const C a = weight == C(1) ? C(0) : (C(1) - weight) * low;
  return weight == C(0) ? a : a + weight * high;
}

}  // namespace binade::kernels
