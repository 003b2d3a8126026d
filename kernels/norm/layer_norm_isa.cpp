#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/norm/layer_norm_isa_internal.h>

#include <limits>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C>
BINADE_INLINE C square_root(C x) {
  return sqrt(broadcast(x))[0];
}

// The mean (0 without one) in two parts, and rstd.
template <class C>
struct RowStatistics {
  C first, delta, rstd;
};

// Statistics of a row whose squares exceed the compute dtype. Floats are computed in double, which
// holds their squares; doubles are scaled by a power of two, which is exact.
template <class T>
__attribute__((noinline)) RowStatistics<Compute<T>> statistics_of_huge(const LayerNormRows& a,
                                                                       const T* x) {
  using C = Compute<T>;
  const double scale = sizeof(C) == 8 ? kHugeRowScale<double> : 1;
  const double count = static_cast<double>(a.cols);
  const auto scaled = [&](int64_t i) { return static_cast<double>(static_cast<C>(x[i])) * scale; };
  double sum = 0, sum_of_squares = 0;
  for (int64_t i = 0; a.mean && i < a.cols; ++i) {
    sum += scaled(i);
  }
  const double mean = sum / count;
  for (int64_t i = 0; i < a.cols; ++i) {
    const double d = scaled(i) - mean;
    sum_of_squares += d * d;
  }
  const double variance = sum_of_squares / count + a.eps * scale * scale;
  const C first = static_cast<C>(mean / scale);
  return {first, static_cast<C>(mean / scale - static_cast<double>(first)),
          static_cast<C>(scale / square_root<double>(variance))};
}

// The first pass computes the mean up to rounding, the second its remainder and the deviations, so
// that neither a large mean nor a small variance loses digits. The second pass also prefetches the
// next row: only the first pass reads from memory.
template <bool kNontemporal, class T>
void forward_row(const LayerNormRows& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
  T* y = static_cast<T*>(a.y) + row * a.y_stride;
  const C* weight = static_cast<const C*>(a.weight);
  const C* bias = static_cast<const C*>(a.bias);
  const double count = static_cast<double>(a.cols);
  C first = 0;
  if (a.mean) {
    double sum = 0;
    for_blocks(a.cols, [&](int64_t begin, int64_t size) {
      Vector<C> sums[kWays] = {};
      for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
        sums[way()] += load_some<part()>(x + begin + i, n);
      });
      sum += static_cast<double>(reduce_add<C>(sums));
    });
    first = static_cast<C>(sum / count);
  }
  double sum = 0, sum_of_squares = 0;
  for_blocks(a.cols, [&](int64_t begin, int64_t size) {
    Vector<C> rest[kWays] = {}, squares[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      prefetch(x + a.x_stride + begin + i);
      const Vector<C> d = load_some<part()>(x + begin + i, n, first) - first;
      rest[way()] += d;
      squares[way()] += d * d;
    });
    sum += static_cast<double>(reduce_add<C>(rest));
    sum_of_squares += static_cast<double>(reduce_add<C>(squares));
  });
  const double remainder = a.mean ? sum / count : 0;
  C delta = static_cast<C>(remainder);
  const C variance = static_cast<C>(sum_of_squares / count - remainder * remainder);
  C rstd = 1 / square_root<C>((variance < 0 ? 0 : variance) + static_cast<C>(a.eps));
  if (!(variance <= std::numeric_limits<C>::max())) {
    const RowStatistics<C> s = statistics_of_huge(a, x);
    first = s.first;
    delta = s.delta;
    rstd = s.rstd;
  }
  static_cast<C*>(a.rstd)[row] = rstd;
  if (a.mean) {
    static_cast<C*>(a.mean)[row] = first + delta;
  }
  for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
    Vector<C> u = (load_some<part()>(x + i, n) - first - delta) * rstd;
    if (weight) {
      u *= load_some<part()>(weight + i, n);
    }
    if (bias) {
      u += load_some<part()>(bias + i, n);
    }
    store_result<kNontemporal, part()>(y + i, u, n);
  });
}

template <class C, bool kPart>
BINADE_INLINE void accumulate(C* sums, int64_t i, Vector<C> v, int64_t n) {
  if (sums) {
    store_some<kPart>(sums + i, load_some<kPart>(sums + i, n) + v, n);
  }
}

template <bool kNontemporal, class T>
void backward_row(const LayerNormRowsBackward& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
  const T* dy = static_cast<const T*>(a.dy) + row * a.dy_stride;
  const C* weight = static_cast<const C*>(a.weight);
  C* dweight = static_cast<C*>(a.dweight);
  C* dbias = static_cast<C*>(a.dbias);
  const C mean = a.mean ? static_cast<const C*>(a.mean)[row] : C(0);
  const C rstd = static_cast<const C*>(a.rstd)[row];
  double g_sum = 0, gu_sum = 0;
  for_blocks(a.cols, [&](int64_t begin, int64_t size) {
    Vector<C> g_sums{}, gu_sums{};
    for_vectors<C>(size, [&](auto part, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      const Vector<C> u = (load_some<part()>(x + i, n, mean) - mean) * rstd;
      const Vector<C> d = load_some<part()>(dy + i, n);
      const Vector<C> g = weight ? d * load_some<part()>(weight + i, n) : d;
      g_sums += g;
      gu_sums += g * u;
      accumulate<C, part()>(dweight, i, d * u, n);
      accumulate<C, part()>(dbias, i, d, n);
    });
    g_sum += static_cast<double>(reduce_add<C>(g_sums));
    gu_sum += static_cast<double>(reduce_add<C>(gu_sums));
  });
  if (!a.dx) {
    return;
  }
  T* dx = static_cast<T*>(a.dx) + row * a.dx_stride;
  const C count = static_cast<C>(a.cols);
  const C g_mean = a.mean ? static_cast<C>(g_sum) / count : C(0);
  const C gu_mean = static_cast<C>(gu_sum) / count;
  for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> u = (load_some<part()>(x + i, n) - mean) * rstd;
    const Vector<C> d = load_some<part()>(dy + i, n);
    const Vector<C> g = weight ? d * load_some<part()>(weight + i, n) : d;
    prefetch(x + a.x_stride + i);
    prefetch(dy + a.dy_stride + i);
    store_result<kNontemporal, part()>(dx + i, (g - g_mean - u * gu_mean) * rstd, n);
  });
}

template <bool kNontemporal, class T>
void rows_of(const LayerNormRows& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    forward_row<kNontemporal, T>(a, row);
  }
  if (kNontemporal) {
    nontemporal_fence();
  }
}

template <bool kNontemporal, class T>
void rows_of(const LayerNormRowsBackward& a) {
  using C = Compute<T>;
  for (C* sums : {static_cast<C*>(a.dweight), static_cast<C*>(a.dbias)}) {
    for (int64_t i = 0; sums && i < a.cols; ++i) {
      sums[i] = 0;
    }
  }
  for (int64_t row = 0; row < a.rows; ++row) {
    backward_row<kNontemporal, T>(a, row);
  }
  if (kNontemporal) {
    nontemporal_fence();
  }
}

}  // namespace

void layer_norm_rows(const LayerNormRows& a) {
  dispatch_floating("layer_norm", a.dtype, [&]<class T>(Type<T>) {
    a.nontemporal&& fits_nontemporal(static_cast<T*>(a.y), a.y_stride, a.cols)
        ? rows_of<true, T>(a)
        : rows_of<false, T>(a);
  });
}

void layer_norm_rows_backward(const LayerNormRowsBackward& a) {
  dispatch_floating("layer_norm", a.dtype, [&]<class T>(Type<T>) {
    a.nontemporal&& fits_nontemporal(static_cast<T*>(a.dx), a.dx_stride, a.cols)
        ? rows_of<true, T>(a)
        : rows_of<false, T>(a);
  });
}

}  // namespace binade::kernels::BINADE_ISA
