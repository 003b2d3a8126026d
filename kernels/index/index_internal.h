// The loops of an index kernel, the same on every device.
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
template <ScatterOp kOp>
struct Terms {
  template <class A>
  BINADE_HD static constexpr A none() {
    using Limits = std::numeric_limits<A>;
    if constexpr (kOp == ScatterOp::max) {
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    } else if constexpr (kOp == ScatterOp::min) {
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    } else {
      return kOp == ScatterOp::prod ? A(1) : A(0);
    }
  }
  template <class A>
  BINADE_HD static A join(A a, A b) {
    if constexpr (kOp == ScatterOp::max) {
      return b != b || b > a ? b : a;  // NOLINT(misc-redundant-expression): NaN
    } else if constexpr (kOp == ScatterOp::min) {
      return b != b || b < a ? b : a;  // NOLINT(misc-redundant-expression): NaN
    } else if constexpr (std::is_integral_v<A>) {
      using U = std::make_unsigned_t<A>;
      const auto x = static_cast<U>(a), y = static_cast<U>(b);
      return static_cast<A>(kOp == ScatterOp::prod ? x * y : x + y);
    } else {
      return kOp == ScatterOp::prod ? a * b : a + b;
    }
  }
};

// Calls f(Type<T>, the operation) for the dtype and the operation of a scatter_add.
template <class F>
void dispatch_terms(const ScatterAdd& a, F&& f) {
  const auto with = [&]<ScatterOp kOp>(Terms<kOp> terms) {
    switch (a.y.dtype) {
      case DType::i64: return f(Type<int64_t>{}, terms);
      case DType::i32: return f(Type<int32_t>{}, terms);
      default: return dispatch_floating(a.op, a.y.dtype, [&]<class T>(Type<T> t) { f(t, terms); });
    }
  };
  switch (a.combine) {
    case ScatterOp::sum: return with(Terms<ScatterOp::sum>{});
    case ScatterOp::prod: return with(Terms<ScatterOp::prod>{});
    case ScatterOp::max: return with(Terms<ScatterOp::max>{});
    case ScatterOp::min: return with(Terms<ScatterOp::min>{});
  }
}

// y with the sizes of index, and stride 0 along `dim`.
View target_lines(const Scatter& a);

}  // namespace binade::kernels
