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
  int64_t first = 0, last = axis.kernel;
  while (first < last && start + first * axis.dilation < 0) {
    ++first;
  }
  while (last > first && start + (last - 1) * axis.dilation >= size) {
    --last;
  }
  return {start, first, last};
}

// Indices of windows are bytes in memory and integers as wide as C in vectors.
typedef uint8_t FloatBytes __attribute__((vector_size(kLanes<float>)));
typedef uint8_t DoubleBytes __attribute__((vector_size(kLanes<double>)));
template <class C>
struct BytesOf {
  using type = FloatBytes;
};
template <>
struct BytesOf<double> {
  using type = DoubleBytes;
};

template <class C, bool kPart>
BINADE_INLINE void store_indices(uint8_t* p, Mask<C> lanes, int64_t n) {
  const auto bytes = __builtin_convertvector(lanes, typename BytesOf<C>::type);
  __builtin_memcpy(p, &bytes, kPart ? static_cast<size_t>(n) : sizeof bytes);
}

template <class C, bool kPart>
BINADE_INLINE Mask<C> load_indices(const uint8_t* p, int64_t n) {
  typename BytesOf<C>::type bytes{};
  __builtin_memcpy(&bytes, p, kPart ? static_cast<size_t>(n) : sizeof bytes);
  return __builtin_convertvector(bytes, Mask<C>);
}

template <class C>
BINADE_INLINE Mask<C> broadcast_integer(int64_t value) {
  using Integer = decltype(Mask<C>{}[0] + 0);
  return Mask<C>{} + static_cast<Integer>(value);
}

template <class T, bool kPart>
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
    store_indices<C, kPart>(pixel<uint8_t>(a.index, a.row, col) + channel, where, n);
  }
}

template <class T>
void max_row(const MaxPoolRow& a) {
  const Taps h = taps(a.height, a.row, a.x.rows);
  for (int64_t col = 0; col < a.y.cols; ++col) {
    const Taps w = taps(a.width, col, a.x.cols);
    for_vectors<Compute<T>>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      max_window<T, part()>(a, h, w, col, channel, n);
    });
  }
}

// The window that holds an input position at tap `tap`, or -1.
BINADE_INLINE int64_t window_at(const PoolAxis& axis, int64_t position, int64_t tap,
                                int64_t outputs) {
  const int64_t start = position + axis.padding - tap * axis.dilation;
  if (start < 0 || start % axis.stride != 0 || start / axis.stride >= outputs) {
    return -1;
  }
  return start / axis.stride;
}

// A window that covers a pixel: where its gradient and its choice are, and the pixel's place in it.
template <class T>
struct Covering {
  const T* dy;
  const uint8_t* index;
  int64_t place;
};

// The windows that cover dx's pixel (a.row, col), at most 255.
template <class T>
int64_t coverings_of(const MaxPoolRowBackward& a, int64_t col, Covering<T>* coverings) {
  int64_t count = 0;
  for (int64_t i = 0; i < a.height.kernel; ++i) {
    const int64_t p = window_at(a.height, a.row, i, a.dy.rows);
    for (int64_t j = 0; p >= 0 && j < a.width.kernel; ++j) {
      const int64_t q = window_at(a.width, col, j, a.dy.cols);
      if (q >= 0) {
        coverings[count++] = {pixel<T>(a.dy, p, q), pixel<uint8_t>(a.index, p, q),
                              i * a.width.kernel + j};
      }
    }
  }
  return count;
}

template <class T>
void max_row_backward(const MaxPoolRowBackward& a) {
  using C = Compute<T>;
  Covering<T> coverings[255];
  for (int64_t col = 0; col < a.dx.cols; ++col) {
    T* dx = pixel<T>(a.dx, a.row, col);
    const int64_t count = coverings_of(a, col, coverings);
    for_vectors<C>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      Vector<C> sum{};
      for (int64_t k = 0; k < count; ++k) {
        const Mask<C> chosen = load_indices<C, part()>(coverings[k].index + channel, n) ==
                               broadcast_integer<C>(coverings[k].place);
        const Vector<C> g = load_some<part()>(coverings[k].dy + channel, n);
        sum += chosen ? g : Vector<C>{};
      }
      store_some<part()>(dx + channel, sum, n);
    });
  }
}

template <class T>
void avg_row(const AvgPoolRow& a) {
  using C = Compute<T>;
  for (int64_t col = 0; col < a.y.cols; ++col) {
    const PoolSpan span = a.cols[col];
    T* y = pixel<T>(a.y, a.row, col);
    const C count = static_cast<C>(a.rows.count * span.count);
    for_vectors<C>(a.channels, [&](auto part, int64_t channel, int64_t n) {
      Vector<C> sum{};
      for (int64_t i = a.rows.begin; i < a.rows.end; ++i) {
        for (int64_t j = span.begin; j < span.end; ++j) {
          sum += load_some<part()>(pixel<T>(a.x, i, j) + channel, n);
        }
      }
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
      Vector<C> sum{};
      for (int64_t p = a.rows.begin; p < a.rows.end; ++p) {
        for (int64_t q = span.begin; q < span.end; ++q) {
          const C count = static_cast<C>(a.row_windows[p].count * a.col_windows[q].count);
          sum += load_some<part()>(pixel<T>(a.dy, p, q) + channel, n) / count;
        }
      }
      store_some<part()>(dx + channel, sum, n);
    });
  }
}

}  // namespace

void max_pool_row(const MaxPoolRow& a) {
  dispatch_floating("max_pool2d", a.dtype, [&]<class T>(Type<T>) { max_row<T>(a); });
}

void max_pool_row_backward(const MaxPoolRowBackward& a) {
  dispatch_floating("max_pool2d", a.dtype, [&]<class T>(Type<T>) { max_row_backward<T>(a); });
}

void avg_pool_row(const AvgPoolRow& a) {
  dispatch_floating("avg_pool2d", a.dtype, [&]<class T>(Type<T>) { avg_row<T>(a); });
}

void avg_pool_row_backward(const AvgPoolRowBackward& a) {
  dispatch_floating("avg_pool2d", a.dtype, [&]<class T>(Type<T>) { avg_row_backward<T>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
