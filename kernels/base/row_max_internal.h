// The largest element of a row, for softmax and cross entropy. Include only from *_isa.cpp files.
#pragma once
#include <binade/kernels/base/vector_math_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// -inf if there are no elements.
template <class T>
BINADE_INLINE Compute<T> row_max(const T* x, int64_t cols) {
  using C = Compute<T>;
  Vector<C> best[kWays];
  for (Vector<C>& b : best) {
    b = broadcast(-kInfinity<C>);
  }
  for_vectors_in_ways<C>(cols, [&](auto part, auto way, int64_t i, int64_t n) {
    best[way()] = max<C>(best[way()], load_some<part()>(x + i, n, -kInfinity<C>));
  });
  return reduce_max<C>(max<C>(max<C>(best[0], best[1]), max<C>(best[2], best[3])));
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
