#include <binade/kernels/base/row_max_internal.h>
#include <binade/kernels/softmax/softmax_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Rows are processed one after the other. Only the first pass over a row reads from memory; a later
// pass, bound by arithmetic, prefetches the next row (`ahead` elements further on).

// Stores the exponentials in e, which may be y.
template <bool kNontemporal, class T>
void softmax_row(const T* x, int64_t ahead, Compute<T>* e, T* y, int64_t cols) {
  using C = Compute<T>;
  const C largest = row_max(x, cols);
  const C sum = sum_of_blocks<C>(cols, [&](int64_t begin, int64_t size) {
    Vector<C> sums{};
    for_vectors<C>(size, [&](auto part, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      prefetch(x + ahead + i);
      const Vector<C> v = lifted_exp(load_some<part()>(x + i, n, -kInfinity<C>) - largest);
      sums += v;
      store_some<part()>(e + i, v, n);
    });
    return reduce_add<C>(sums);
  });
  const C scale = 1 / sum;
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    store_result<kNontemporal, part()>(y + i, load_some<part()>(e + i, n) * scale, n);
  });
}

template <bool kNontemporal, class T>
void log_softmax_row(const T* x, int64_t ahead, T* y, int64_t cols) {
  using C = Compute<T>;
  const C largest = row_max(x, cols);
  const C sum = sum_of_blocks<C>(cols, [&](int64_t begin, int64_t size) {
    Vector<C> sums{};
    for_vectors<C>(size, [&](auto part, int64_t i, int64_t n) {
      prefetch(x + ahead + begin + i);
      sums += lifted_exp(load_some<part()>(x + begin + i, n, -kInfinity<C>) - largest);
    });
    return reduce_add<C>(sums);
  });
  const C log_sum = log(sum / kLift<C>);
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    store_result<kNontemporal, part()>(y + i, load_some<part()>(x + i, n) - largest - log_sum, n);
  });
}

template <bool kNontemporal, class T>
void softmax_row_backward(const SoftmaxRowsBackward& a, const T* y, const T* dy, T* dx) {
  using C = Compute<T>;
  const C sum = sum_of_blocks<C>(a.cols, [&](int64_t begin, int64_t size) {
    Vector<C> sums[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      sums[way()] += load_some<part()>(y + i, n) * load_some<part()>(dy + i, n);
    });
    return reduce_add<C>(sums);
  });
  for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
    prefetch(y + a.y_stride + i);
    prefetch(dy + a.dy_stride + i);
    const Vector<C> g = load_some<part()>(dy + i, n) - sum;
    store_result<kNontemporal, part()>(dx + i, load_some<part()>(y + i, n) * g, n);
  });
}

template <bool kNontemporal, class T>
void log_softmax_row_backward(const SoftmaxRowsBackward& a, const T* y, const T* dy, T* dx) {
  using C = Compute<T>;
  const C sum = sum_of_blocks<C>(a.cols, [&](int64_t begin, int64_t size) {
    Vector<C> sums[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      sums[way()] += load_some<part()>(dy + begin + i, n);
    });
    return reduce_add<C>(sums);
  });
  for_vectors<C>(a.cols, [&](auto part, int64_t i, int64_t n) {
    prefetch(y + a.y_stride + i);
    prefetch(dy + a.dy_stride + i);
    const Vector<C> p = lifted_exp(load_some<part()>(y + i, n)) * (1 / kLift<C>);
    store_result<kNontemporal, part()>(dx + i, load_some<part()>(dy + i, n) - p * sum, n);
  });
}

template <bool kNontemporal, class T>
void rows_of(const SoftmaxRows& a) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.y);
  for (int64_t row = 0; row < a.rows; ++row, x += a.x_stride, y += a.y_stride) {
    if (a.log) {
      log_softmax_row<kNontemporal>(x, a.x_stride, y, a.cols);
    } else if constexpr (dtype_of<T> == dtype_of<Compute<T>> && !kNontemporal) {
      softmax_row<false>(x, a.x_stride, y, y, a.cols);
    } else {
      softmax_row<kNontemporal>(x, a.x_stride, static_cast<Compute<T>*>(a.scratch), y, a.cols);
    }
  }
  if (kNontemporal) {
    nontemporal_fence();
  }
}

template <bool kNontemporal, class T>
void rows_of(const SoftmaxRowsBackward& a) {
  const T* y = static_cast<const T*>(a.y);
  const T* dy = static_cast<const T*>(a.dy);
  T* dx = static_cast<T*>(a.dx);
  for (int64_t row = 0; row < a.rows; ++row) {
    if (a.log) {
      log_softmax_row_backward<kNontemporal>(a, y, dy, dx);
    } else {
      softmax_row_backward<kNontemporal>(a, y, dy, dx);
    }
    y += a.y_stride;
    dy += a.dy_stride;
    dx += a.dx_stride;
  }
  if (kNontemporal) {
    nontemporal_fence();
  }
}

}  // namespace

void softmax_rows(const SoftmaxRows& a) {
  dispatch_floating("softmax", a.dtype, [&]<class T>(Type<T>) {
    a.nontemporal&& fits_nontemporal(static_cast<T*>(a.y), a.y_stride, a.cols)
        ? rows_of<true, T>(a)
        : rows_of<false, T>(a);
  });
}

void softmax_rows_backward(const SoftmaxRowsBackward& a) {
  dispatch_floating("softmax", a.dtype, [&]<class T>(Type<T>) {
    a.nontemporal&& fits_nontemporal(static_cast<T*>(a.dx), a.dx_stride, a.cols)
        ? rows_of<true, T>(a)
        : rows_of<false, T>(a);
  });
}

}  // namespace binade::kernels::BINADE_ISA
