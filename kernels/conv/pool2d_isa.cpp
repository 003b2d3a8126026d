#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/conv/pool2d_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class T>
BINADE_INLINE T* pixel(const PixelPlane& plane, int64_t row, int64_t col) {
  return static_cast<T*>(plane.data) + row * plane.row_stride + col * plane.col_stride;
}

// The taps of a window that lie in [0, size): from `first` up to `last`, and the input position of
// tap 0.
struct Taps {
  int64_t start, first, last;
};
BINADE_INLINE Taps taps(const PoolAxis& axis, int64_t output, int64_t size) {
  const int64_t start = output * axis.stride - axis.padding;
  const int64_t before = start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0;
  const int64_t inside = start < size ? (size - start + axis.dilation - 1) / axis.dilation : 0;
  const int64_t first = before < axis.kernel ? before : axis.kernel;
  const int64_t last = inside < axis.kernel ? inside : axis.kernel;
  return {start, first, last > first ? last : first};
}

// In memory the indices of max pooling are bytes, or i32 for large windows; in vectors they are
// integers as wide as C.
typedef uint8_t FloatBytes __attribute__((vector_size(kLanes<float>)));
typedef uint8_t DoubleBytes __attribute__((vector_size(kLanes<double>)));
typedef int32_t FloatWords __attribute__((vector_size(4 * kLanes<float>)));
typedef int32_t DoubleWords __attribute__((vector_size(4 * kLanes<double>)));
template <class C, class I>
struct IndicesOf;
template <>
struct IndicesOf<float, uint8_t> {
  using type = FloatBytes;
};
template <>
struct IndicesOf<double, uint8_t> {
  using type = DoubleBytes;
};
template <>
struct IndicesOf<float, int32_t> {
  using type = FloatWords;
};
template <>
struct IndicesOf<double, int32_t> {
  using type = DoubleWords;
};

template <class C, bool kPart, class I>
BINADE_INLINE void store_indices(I* p, Mask<C> lanes, int64_t n) {
  const auto indices = __builtin_convertvector(lanes, typename IndicesOf<C, I>::type);
  __builtin_memcpy(p, &indices, kPart ? static_cast<size_t>(n) * sizeof(I) : sizeof indices);
}

template <class C, bool kPart, class I>
BINADE_INLINE Mask<C> load_indices(const I* p, int64_t n) {
  typename IndicesOf<C, I>::type indices{};
  __builtin_memcpy(&indices, p, kPart ? static_cast<size_t>(n) * sizeof(I) : sizeof indices);
  return __builtin_convertvector(indices, Mask<C>);
}

template <class C>
BINADE_INLINE Mask<C> broadcast_integer(int64_t value) {
  using Integer = decltype(Mask<C>{}[0] + 0);
  return Mask<C>{} + static_cast<Integer>(value);
}

template <class T, class I, bool kPart>
BINADE_INLINE void max_window(const MaxPoolRow& a, const Taps& h, const Taps& w, int64_t col,
                              int64_t channel, int64_t n) {
  using C = Compute<T>;
  const int64_t kernel_cols = a.width.kernel;
  Vector<C> best = broadcast(-kInfinity<C>);
  Mask<C> where = broadcast_integer<C>(h.first * kernel_cols + w.first);
  for (int64_t i = h.first; i < h.last; ++i) {
    const T* x = pixel<T>(a.x, h.start + i * a.height.dilation, w.start) + channel;
    for (int64_t j = w.first; j < w.last; ++j) {
      const Vector<C> v = load_some<kPart>(x + j * a.width.dilation * a.x.col_stride, n);
      // v is larger, or v is the first NaN.
      const Mask<C> better = ~(v <= best) & (best == best);
      best = better ? v : best;
      where = better ? broadcast_integer<C>(i * kernel_cols + j) : where;
    }
  }
  store_some<kPart>(pixel<T>(a.y, a.row, col) + channel, best, n);
  if (a.index.data) {
    store_indices<C, kPart>(pixel<I>(a.index, a.row, col) + channel, where, n);
  }
}

template <class T, class I>
void max_row(const MaxPoolRow& a) {
  const Taps h = taps(a.height, a.row, a.x.rows);
  for (int64_t col = 0; col < a.y.cols; ++col) {
    const Taps w = taps(a.width, col, a.x.cols);
    for_vectors<Compute<T>>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      max_window<T, I, part()>(a, h, w, col, channel, n);
    });
  }
}

// The windows that hold an input position. They are visited from `last` down to `first`, so that
// their taps are in ascending order.
struct Windows {
  int64_t first, last;
};
BINADE_INLINE Windows windows_at(const PoolAxis& axis, int64_t position, int64_t outputs) {
  const int64_t end = position + axis.padding, begin = end - (axis.kernel - 1) * axis.dilation;
  const int64_t last = end / axis.stride;
  return {begin > 0 ? (begin + axis.stride - 1) / axis.stride : 0,
          last < outputs ? last : outputs - 1};
}
// The tap of a window at an input position, or -1 between the taps.
BINADE_INLINE int64_t tap_at(const PoolAxis& axis, int64_t position, int64_t window) {
  const int64_t offset = position + axis.padding - window * axis.stride;
  return offset % axis.dilation == 0 ? offset / axis.dilation : -1;
}

// The windows that cover dx's pixel (a.row, col).
template <class T, class I>
int64_t coverings_of(const MaxPoolRowBackward& a, int64_t col) {
  const Windows rows = windows_at(a.height, a.row, a.dy.rows);
  const Windows cols = windows_at(a.width, col, a.dy.cols);
  int64_t count = 0;
  for (int64_t p = rows.last; p >= rows.first; --p) {
    const int64_t i = tap_at(a.height, a.row, p);
    for (int64_t q = cols.last; i >= 0 && q >= cols.first; --q) {
      const int64_t j = tap_at(a.width, col, q);
      if (j >= 0) {
        a.coverings[count++] = {pixel<T>(a.dy, p, q), pixel<I>(a.index, p, q),
                                i * a.width.kernel + j};
      }
    }
  }
  return count;
}

template <class T, class I>
void max_row_backward(const MaxPoolRowBackward& a) {
  using C = Compute<T>;
  for (int64_t col = 0; col < a.dx.cols; ++col) {
    T* dx = pixel<T>(a.dx, a.row, col);
    const int64_t count = coverings_of<T, I>(a, col);
    for_vectors<C>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      Vector<C> sum{};
      for (int64_t k = 0; k < count; ++k) {
        const PoolCovering& from = a.coverings[k];
        const Mask<C> chosen = load_indices<C, part()>(static_cast<const I*>(from.index) + channel,
                                                       n) == broadcast_integer<C>(from.place);
        const Vector<C> g = load_some<part()>(static_cast<const T*>(from.dy) + channel, n);
        sum += chosen ? g : Vector<C>{};
      }
      store_some<part()>(dx + channel, sum, n);
    });
  }
}

// The sum of term(i, j) over rows and columns: in the compute type over kPoolSumBlock terms, in
// double over these blocks, because a long sum of floats loses digits.
template <class C, class F>
BINADE_INLINE Vector<C> sum_over(const PoolSpan& rows, const PoolSpan& cols, F&& term) {
  typedef double Wide __attribute__((vector_size(sizeof(double) * kLanes<C>)));
  Vector<C> sum{};
  if (!is_long_pool_sum(rows, cols)) {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = cols.begin; j < cols.end; ++j) {
        sum += term(i, j);
      }
    }
    return sum;
  }
  Wide total{};
  int64_t terms = 0;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = cols.begin; j < cols.end; ++j) {
      sum += term(i, j);
      if (++terms % kPoolSumBlock == 0) {
        total += __builtin_convertvector(sum, Wide);
        sum = Vector<C>{};
      }
    }
  }
  return __builtin_convertvector(total + __builtin_convertvector(sum, Wide), Vector<C>);
}

template <class T>
void avg_row(const AvgPoolRow& a) {
  using C = Compute<T>;
  for (int64_t col = 0; col < a.y.cols; ++col) {
    const PoolSpan span = a.cols[col];
    T* y = pixel<T>(a.y, a.row, col);
    const C count = static_cast<C>(a.rows.count * span.count);
    for_vectors<C>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      const Vector<C> sum = sum_over<C>(a.rows, span, [&](int64_t i, int64_t j) {
        return load_some<part()>(pixel<T>(a.x, i, j) + channel, n);
      });
      store_some<part()>(y + channel, sum / count, n);
    });
  }
}

template <class T>
void avg_row_backward(const AvgPoolRowBackward& a) {
  using C = Compute<T>;
  for (int64_t col = 0; col < a.dx.cols; ++col) {
    const PoolSpan span = a.cols[col];
    T* dx = pixel<T>(a.dx, a.row, col);
    for_vectors<C>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      const Vector<C> sum = sum_over<C>(a.rows, span, [&](int64_t p, int64_t q) {
        const C count = static_cast<C>(a.row_windows[p].count * a.col_windows[q].count);
        return load_some<part()>(pixel<T>(a.dy, p, q) + channel, n) / count;
      });
      store_some<part()>(dx + channel, sum, n);
    });
  }
}

}  // namespace

void max_pool_row(const MaxPoolRow& a) {
  dispatch_floating("max_pool2d", a.dtype, [&]<class T>(Type<T>) {
    a.index_dtype == DType::u8 ? max_row<T, uint8_t>(a) : max_row<T, int32_t>(a);
  });
}

void max_pool_row_backward(const MaxPoolRowBackward& a) {
  dispatch_floating("max_pool2d", a.dtype, [&]<class T>(Type<T>) {
    a.index_dtype == DType::u8 ? max_row_backward<T, uint8_t>(a) : max_row_backward<T, int32_t>(a);
  });
}

void avg_pool_row(const AvgPoolRow& a) {
  dispatch_floating("avg_pool2d", a.dtype, [&]<class T>(Type<T>) { avg_row<T>(a); });
}

void avg_pool_row_backward(const AvgPoolRowBackward& a) {
  dispatch_floating("avg_pool2d", a.dtype, [&]<class T>(Type<T>) { avg_row_backward<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
