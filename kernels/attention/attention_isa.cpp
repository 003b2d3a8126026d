#include <binade/kernels/attention/attention_isa_internal.h>
#include <binade/kernels/base/vector_math_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

int64_t visible_columns(const AttentionTile& tile, int64_t row) {
  const int64_t end = tile.visible + row;
  return !tile.causal || end > tile.cols ? tile.cols : end < 0 ? 0 : end;
}

template <class C>
C exp_one(C x) {
  return exp(broadcast(x))[0];
}

// e^x for x <= 0, accurate to rounding.
template <class C>
BINADE_INLINE Vector<C> unit_exp(Vector<C> x) {
  return lifted_exp(x) * (1 / kLift<C>);
}

template <class C>
struct Row {
  C* scores;
  const C* bias;
  C scale;

  template <bool kPart>
  BINADE_INLINE Vector<C> load(int64_t i, int64_t n) const {
    Vector<C> s = load_some<kPart>(scores + i, n) * scale;
    if (bias) {
      s += load_some<kPart>(bias + i, n);
    }
    return s;
  }
};

template <class C>
Row<C> row_of(const AttentionTile& tile, void* scores, int64_t row) {
  const C* bias = static_cast<const C*>(tile.bias);
  return {static_cast<C*>(scores) + row * tile.row_stride,
          bias ? bias + row * tile.row_stride : nullptr, static_cast<C>(tile.scale)};
}

// Scales the scores of a row in place; returns the largest.
template <class C>
C scale_row(const AttentionSoftmax& a, int64_t i) {
  const Row<C> row = row_of<C>(a.tile, a.scores, i);
  Vector<C> best = broadcast(-kInfinity<C>);
  for_vectors<C>(visible_columns(a.tile, i), [&](auto part, int64_t j, int64_t n) {
    Vector<C> s = row.template load<part()>(j, n);
    store_some<part()>(row.scores + j, s, n);
    using Signed = decltype(Mask<C>{}[0] + 0);
    s = !part() || lane_numbers<C>() < static_cast<Signed>(n) ? s : broadcast(-kInfinity<C>);
    best = max<C>(best, s);
  });
  return reduce_max<C>(best);
}

template <class C>
void softmax_row(const AttentionSoftmax& a, int64_t i, C in_tile) {
  C* scores = row_of<C>(a.tile, a.scores, i).scores;
  const int64_t seen = visible_columns(a.tile, i);
  C &largest = static_cast<C*>(a.max)[i], &sum = static_cast<C*>(a.sum)[i];
  const C top = in_tile > largest ? in_tile : largest;
  const C base = top == -kInfinity<C> ? C(0) : top;  // all -inf so far: avoids inf - inf
  Vector<C> sums{};
  for_vectors<C>(seen, [&](auto part, int64_t j, int64_t n) {
    const Vector<C> p = unit_exp<C>(load_some<part()>(scores + j, n, -kInfinity<C>) - base);
    sums += p;
    store_some<part()>(scores + j, p, n);
  });
  for_vectors<C>(a.tile.cols - seen, [&](auto part, int64_t j, int64_t n) {
    store_some<part()>(scores + seen + j, Vector<C>{}, n);
  });
  if (largest == top || largest == -kInfinity<C>) {  // the same top, or nothing accumulated
    sum += reduce_add<C>(sums);
  } else {
    const C factor = exp_one(largest - base);
    sum = sum * factor + reduce_add<C>(sums);
    C* accumulated = static_cast<C*>(a.accumulated) + i * a.width;
    for_vectors<C>(a.width, [&](auto part, int64_t j, int64_t n) {
      store_some<part()>(accumulated + j, load_some<part()>(accumulated + j, n) * factor, n);
    });
  }
  largest = top;
}

// Two passes over a few rows: the second needs the largest score of its row, whose latency is
// hidden behind the other rows of the first pass.
template <class C>
void softmax_rows(const AttentionSoftmax& a) {
  constexpr int64_t kRows = 8;
  C in_tile[kRows];
  for (int64_t first = 0; first < a.tile.rows; first += kRows) {
    const int64_t end = a.tile.rows - first < kRows ? a.tile.rows - first : kRows;
    for (int64_t i = 0; i < end; ++i) {
      in_tile[i] = scale_row<C>(a, first + i);
    }
    for (int64_t i = 0; i < end; ++i) {
      softmax_row<C>(a, first + i, in_tile[i]);
    }
  }
}

template <class C>
void gradient_row(const AttentionGradient& a, int64_t i) {
  const Row<C> row = row_of<C>(a.tile, a.scores, i);
  C* gradients = static_cast<C*>(a.gradients) + i * a.tile.row_stride;
  const int64_t seen = visible_columns(a.tile, i);
  const C lse = static_cast<const C*>(a.lse)[i], delta = static_cast<const C*>(a.delta)[i];
  for_vectors<C>(seen, [&](auto part, int64_t j, int64_t n) {
    const Vector<C> p = unit_exp<C>(row.template load<part()>(j, n) - lse);
    store_some<part()>(row.scores + j, p, n);
    store_some<part()>(gradients + j, p * (load_some<part()>(gradients + j, n) - delta), n);
  });
  for_vectors<C>(a.tile.cols - seen, [&](auto part, int64_t j, int64_t n) {
    store_some<part()>(row.scores + seen + j, Vector<C>{}, n);
    store_some<part()>(gradients + seen + j, Vector<C>{}, n);
  });
}

// A sum is one chain of additions in the same order as the products dout v^T, from which it is
// subtracted: if the two nearly cancel, so do their rounding errors. Chains of several rows
// overlap.
template <int kRows, class T>
BINADE_INLINE void delta_rows(const AttentionDelta& a, int64_t first) {
  using C = Compute<T>;
  const T* out = static_cast<const T*>(a.out) + first * a.out_stride;
  const T* dout = static_cast<const T*>(a.dout) + first * a.dout_stride;
  C sums[kRows] = {};
  for (int64_t j = 0; j < a.width; ++j) {
    for (int i = 0; i < kRows; ++i) {
      sums[i] +=
          static_cast<C>(out[i * a.out_stride + j]) * static_cast<C>(dout[i * a.dout_stride + j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    static_cast<C*>(a.delta)[first + i] = sums[i];
  }
}

template <class T>
void delta(const AttentionDelta& a) {
  constexpr int kRows = 8;
  int64_t i = 0;
  for (; i + kRows <= a.rows; i += kRows) {
    delta_rows<kRows, T>(a, i);
  }
  for (; i < a.rows; ++i) {
    delta_rows<1, T>(a, i);
  }
}

}  // namespace

void attention_delta(const AttentionDelta& a) {
  dispatch_floating("attention", a.dtype, [&]<class T>(Type<T>) { delta<T>(a); });
}

void attention_softmax(const AttentionSoftmax& a) {
  a.tile.compute == DType::f64 ? softmax_rows<double>(a) : softmax_rows<float>(a);
}

void attention_gradient(const AttentionGradient& a) {
  for (int64_t i = 0; i < a.tile.rows; ++i) {
    a.tile.compute == DType::f64 ? gradient_row<double>(a, i) : gradient_row<float>(a, i);
  }
}

}  // namespace binade::kernels::BINADE_ISA
