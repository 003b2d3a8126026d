#include <binade/kernels/softmax_isa.h>
#include <binade/kernels/vector_math.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
Compute<T> row_max(const T* x, int64_t cols) {
  using C = Compute<T>;
  Vector<C> best = broadcast(-kInfinity<C>);
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    best = max<C>(best, load_some<part()>(x + i, n, -kInfinity<C>));
  });
  return reduce_max<C>(best);
}

template <class T>
void softmax_row(const T* x, T* y, int64_t cols) {
  using C = Compute<T>;
  // A narrow y cannot hold the exponentials between the passes without a second rounding.
  constexpr bool kKeep = dtype_of<T> == dtype_of<C>;
  const C largest = row_max(x, cols);
  Vector<C> sums{};
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> e = exp(load_some<part()>(x + i, n, -kInfinity<C>) - largest);
    sums += e;
    if (kKeep) {
      store_some<part()>(y + i, e, n);
    }
  });
  const C scale = 1 / reduce_add<C>(sums);
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    Vector<C> e;
    if constexpr (kKeep) {
      e = load_some<part()>(y + i, n);
    } else {
      e = exp(load_some<part()>(x + i, n) - largest);
    }
    store_some<part()>(y + i, e * scale, n);
  });
}

template <class T>
void log_softmax_row(const T* x, T* y, int64_t cols) {
  using C = Compute<T>;
  const C largest = row_max(x, cols);
  Vector<C> sums{};
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    sums += exp(load_some<part()>(x + i, n, -kInfinity<C>) - largest);
  });
  const C log_sum = log(reduce_add<C>(sums));
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    store_some<part()>(y + i, load_some<part()>(x + i, n) - largest - log_sum, n);
  });
}

template <class T>
void softmax_row_backward(const T* y, const T* dy, T* dx, int64_t cols) {
  using C = Compute<T>;
  Vector<C> sums{};
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    sums += load_some<part()>(y + i, n) * load_some<part()>(dy + i, n);
  });
  const C sum = reduce_add<C>(sums);
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> g = load_some<part()>(dy + i, n) - sum;
    store_some<part()>(dx + i, load_some<part()>(y + i, n) * g, n);
  });
}

template <class T>
void log_softmax_row_backward(const T* y, const T* dy, T* dx, int64_t cols) {
  using C = Compute<T>;
  Vector<C> sums{};
  for_vectors<C>(cols,
                 [&](auto part, int64_t i, int64_t n) { sums += load_some<part()>(dy + i, n); });
  const C sum = reduce_add<C>(sums);
  for_vectors<C>(cols, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> p = exp(load_some<part()>(y + i, n));
    store_some<part()>(dx + i, load_some<part()>(dy + i, n) - p * sum, n);
  });
}

}  // namespace

void softmax_rows(const SoftmaxRows& a) {
  dispatch_floating("softmax", a.dtype, [&]<class T>(Type<T>) {
    const T* x = static_cast<const T*>(a.x);
    T* y = static_cast<T*>(a.y);
    for (int64_t row = 0; row < a.rows; ++row) {
      if (a.log) {
        log_softmax_row(x + row * a.x_stride, y + row * a.y_stride, a.cols);
      } else {
        softmax_row(x + row * a.x_stride, y + row * a.y_stride, a.cols);
      }
    }
  });
}

void softmax_rows_backward(const SoftmaxRowsBackward& a) {
  dispatch_floating("softmax", a.dtype, [&]<class T>(Type<T>) {
    const T* y = static_cast<const T*>(a.y);
    const T* dy = static_cast<const T*>(a.dy);
    T* dx = static_cast<T*>(a.dx);
    const auto run = a.log ? log_softmax_row_backward<T> : softmax_row_backward<T>;
    for (int64_t row = 0; row < a.rows; ++row) {
      run(y + row * a.y_stride, dy + row * a.dy_stride, dx + row * a.dx_stride, a.cols);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
