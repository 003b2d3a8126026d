// The shape of an index kernel's loops, the same on every device.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/index/index.h>

#include <limits>
#include <type_traits>

namespace binade::kernels {

// [outer, count, inner] around the indexed dimension, whose size on the other side is `bound`.
// rows: the whole inner range shares an index, so index_inner is 1, else it is inner.
struct IndexShape {
  int64_t outer = 1, count, inner = 1, bound;
  bool rows;
  int64_t index_inner;
};
IndexShape index_shape(const View& index, int dim, int64_t bound);

// The indices that may differ: if rows share an index, without the dimensions after `dim`.
View distinct_indices(const View& index, int dim, const IndexShape& shape);

// The operation of scatter_add on accumulators: none() changes nothing. Integers wrap.
template <Combine kCombine>
struct Terms {
  template <class A>
  BINADE_HD static constexpr A none() {
    using Limits = std::numeric_limits<A>;
    if constexpr (kCombine == Combine::max) {
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    } else if constexpr (kCombine == Combine::min) {
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    } else {
      return kCombine == Combine::prod ? A(1) : A(0);
    }
  }
  template <class A>
  BINADE_HD static A join(A a, A b) {
    if constexpr (kCombine == Combine::max) {
      return b != b || b > a ? b : a;  // NOLINT(misc-redundant-expression): NaN
    } else if constexpr (kCombine == Combine::min) {
      return b != b || b < a ? b : a;  // NOLINT(misc-redundant-expression): NaN
    } else if constexpr (std::is_integral_v<A>) {
      using U = std::make_unsigned_t<A>;
      const auto x = static_cast<U>(a), y = static_cast<U>(b);
      return static_cast<A>(kCombine == Combine::prod ? x * y : x + y);
    } else {
      return kCombine == Combine::prod ? a * b : a + b;
    }
  }
};

// Calls f(Type<T>, the operation) for the dtype and the operation of a scatter_add.
template <class F>
void dispatch_terms(const ScatterAdd& a, F&& f) {
  const auto with = [&]<Combine kCombine>(Terms<kCombine> terms) {
    switch (a.y.dtype) {
      case DType::i64: return f(Type<int64_t>{}, terms);
      case DType::i32: return f(Type<int32_t>{}, terms);
      default: return dispatch_floating(a.op, a.y.dtype, [&]<class T>(Type<T> t) { f(t, terms); });
    }
  };
  switch (a.combine) {
    case Combine::sum: return with(Terms<Combine::sum>{});
    case Combine::prod: return with(Terms<Combine::prod>{});
    case Combine::max: return with(Terms<Combine::max>{});
    case Combine::min: return with(Terms<Combine::min>{});
  }
}

// y with the sizes of index, and stride 0 along `dim`.
View target_lines(const Scatter& a);

}  // namespace binade::kernels
