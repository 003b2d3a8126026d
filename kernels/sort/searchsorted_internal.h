// The binary search, for both backends.
#pragma once
#include <binade/kernels/sort/cumextreme_internal.h>

namespace binade::kernels {

// The order of sort(): NaN is larger than everything else.
template <class C>
BINADE_HD bool comes_first(C a, C b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

// The number of elements of a sorted row [n] before `value`.
template <class T>
BINADE_HD int64_t place_of(const T* row, int64_t n, T value, bool right) {
  using C = Ordered<T>;
  const auto wanted = static_cast<C>(value);
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto element = static_cast<C>(row[middle]);
    const bool before = right ? !comes_first(wanted, element) : comes_first(element, wanted);
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

}  // namespace binade::kernels
