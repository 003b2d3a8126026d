// The rule of running maxima and minima, for both backends.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/host_device.h>

#include <type_traits>

namespace binade::kernels {

// The type in which elements are compared.
template <class T>
using Ordered = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

template <class C>
BINADE_HD bool is_nan(C x) {
  return x != x;  // NOLINT(misc-redundant-expression): also for integers
}

// True if x takes the place of the extreme so far.
template <class C>
BINADE_HD bool is_extreme(C x, C so_far, bool smallest) {
  return is_nan(x) || (!is_nan(so_far) && (smallest ? x <= so_far : x >= so_far));
}

}  // namespace binade::kernels
