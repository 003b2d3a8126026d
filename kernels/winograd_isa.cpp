// The transforms of kernels/winograd.h, vectorised over channels. A transform in two dimensions is
// the one in one dimension along the columns, then along the rows.
#include <binade/kernels/contraction_vector.h>
#include <binade/kernels/winograd.h>

namespace binade::kernels::BINADE_ISA {
namespace {

using V = Vector<float>;
constexpr int kWidth = kLanes<float>;

#define BINADE_UNROLL _Pragma("GCC unroll 6")

constexpr float kA = 0.625f, kB = 1.5f;  // the points are 0, +-a, +-b and infinity
constexpr float kA2 = kA * kA, kB2 = kB * kB;
// 1 / prod (p - q) at 0, at +-a and at +-b; infinity has 1.
constexpr double kA2d = kA2, kB2d = kB2;
constexpr float kScale0 = static_cast<float>(1 / (kA2d * kB2d));
constexpr float kScaleA = static_cast<float>(1 / (2 * kA2d * (kA2d - kB2d)));
constexpr float kScaleB = static_cast<float>(1 / (2 * kB2d * (kB2d - kA2d)));
constexpr float kScaleAa = static_cast<float>(kA / (2 * kA2d * (kA2d - kB2d)));
constexpr float kScaleBb = static_cast<float>(kB / (2 * kB2d * (kB2d - kA2d)));
constexpr float kScaleAa2 = static_cast<float>(1 / (2 * (kA2d - kB2d)));
constexpr float kScaleBb2 = static_cast<float>(1 / (2 * (kB2d - kA2d)));

struct Input {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  BINADE_INLINE static void apply(const V (&d)[6], V (&t)[6]) {
    const V a_even = d[4] - kB2 * d[2], a_odd = kA * (d[3] - kB2 * d[1]);
    const V b_even = d[4] - kA2 * d[2], b_odd = kB * (d[3] - kA2 * d[1]);
    t[0] = kA2 * kB2 * d[0] + (d[4] - (kA2 + kB2) * d[2]);
    t[1] = a_even + a_odd;
    t[2] = a_even - a_odd;
    t[3] = b_even + b_odd;
    t[4] = b_even - b_odd;
    t[5] = kA2 * kB2 * d[1] + (d[5] - (kA2 + kB2) * d[3]);
  }
};

struct Output {  // A^T
  static constexpr int kFrom = 6, kTo = 4;
  BINADE_INLINE static void apply(const V (&m)[6], V (&y)[4]) {
    const V a_even = m[1] + m[2], a_odd = m[1] - m[2], b_even = m[3] + m[4], b_odd = m[3] - m[4];
    y[0] = m[0] + (a_even + b_even);
    y[1] = kB * b_odd + kA * a_odd;
    y[2] = kB2 * b_even + kA2 * a_even;
    y[3] = kB * kB2 * b_odd + (kA * kA2 * a_odd + m[5]);
  }
};

struct OutputGradient {  // A
  static constexpr int kFrom = 4, kTo = 6;
  BINADE_INLINE static void apply(const V (&y)[4], V (&z)[6]) {
    const V a_even = kA2 * y[2] + y[0], a_odd = kA * kA2 * y[3] + kA * y[1];
    const V b_even = kB2 * y[2] + y[0], b_odd = kB * kB2 * y[3] + kB * y[1];
    z[0] = y[0];
    z[1] = a_even + a_odd;
    z[2] = a_even - a_odd;
    z[3] = b_even + b_odd;
    z[4] = b_even - b_odd;
    z[5] = y[3];
  }
};

struct Weight {  // G
  static constexpr int kFrom = 3, kTo = 6;
  BINADE_INLINE static void apply(const V (&g)[3], V (&u)[6]) {
    const V a_even = kScaleAa2 * g[2] + kScaleA * g[0], a_odd = kScaleAa * g[1];
    const V b_even = kScaleBb2 * g[2] + kScaleB * g[0], b_odd = kScaleBb * g[1];
    u[0] = kScale0 * g[0];
    u[1] = a_even + a_odd;
    u[2] = a_even - a_odd;
    u[3] = b_even + b_odd;
    u[4] = b_even - b_odd;
    u[5] = g[2];
  }
};

struct WeightGradient {  // G^T
  static constexpr int kFrom = 6, kTo = 3;
  BINADE_INLINE static void apply(const V (&u)[6], V (&g)[3]) {
    const V a_even = u[1] + u[2], a_odd = u[1] - u[2], b_even = u[3] + u[4], b_odd = u[3] - u[4];
    g[0] = kScale0 * u[0] + (kScaleA * a_even + kScaleB * b_even);
    g[1] = kScaleAa * a_odd + kScaleBb * b_odd;
    g[2] = kScaleAa2 * a_even + (kScaleBb2 * b_even + u[5]);
  }
};

// out(i, j, T x T^T) for x[i][j] = in(i, j).
template <class T, class In, class Out>
BINADE_INLINE void transform(const In& in, const Out& out) {
  V half[T::kTo][T::kFrom];
  BINADE_UNROLL
  for (int j = 0; j < T::kFrom; ++j) {
    V column[T::kFrom], result[T::kTo];
    BINADE_UNROLL
    for (int i = 0; i < T::kFrom; ++i) {
      column[i] = in(i, j);
    }
    T::apply(column, result);
    BINADE_UNROLL
    for (int i = 0; i < T::kTo; ++i) {
      half[i][j] = result[i];
    }
  }
  BINADE_UNROLL
  for (int i = 0; i < T::kTo; ++i) {
    V result[T::kTo];
    T::apply(half[i], result);
    BINADE_UNROLL
    for (int j = 0; j < T::kTo; ++j) {
      out(i, j, result[j]);
    }
  }
}

// A vector of channels of which n are there.
template <bool kWhole>
BINADE_INLINE V read(const float* p, int n) {
  if constexpr (kWhole) {
    return load(p);
  } else {
    return load(p, n);
  }
}
template <bool kWhole>
BINADE_INLINE void write(float* p, V v, int n) {
  if constexpr (kWhole) {
    store(p, v);
  } else {
    store(p, v, n);
  }
}

// Where the pixels of a window of an image are; those outside of the image are zeros.
template <int kSide>
struct Patch {
  float* pixels[kSide][kSide];
  int rows, columns;  // inside the image, of a window that starts there
};

BINADE_INLINE int clip(int64_t i, int side) {
  return static_cast<int>(i < 0 ? 0 : i > side ? side : i);
}

// The window of tile number `tile` whose corner lies (top, left) before the tile's.
template <int kSide>
BINADE_INLINE Patch<kSide> patch_of(const WinogradImages& x, const WinogradTiles& tiles,
                                    int64_t tile, int64_t top, int64_t left) {
  const int64_t image = tile / (tiles.high * tiles.wide), place = tile % (tiles.high * tiles.wide);
  const int64_t row0 = place / tiles.wide * kWinogradTile - top,
                column0 = place % tiles.wide * kWinogradTile - left;
  Patch<kSide> p;
  p.rows = clip(x.rows - row0, kSide);
  p.columns = clip(x.columns - column0, kSide);
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const int64_t row = row0 + i, column = column0 + j;
      const bool inside = row >= 0 && row < x.rows && column >= 0 && column < x.columns;
      p.pixels[i][j] =
          inside ? x.data + image * x.image_stride + row * x.row_stride + column * x.column_stride
                 : x.zeros;
    }
  }
  return p;
}

template <bool kWhole>
struct Whole {
  static constexpr bool kValue = kWhole;
};

// Calls f(first channel, channels, Whole) for each vector of channels.
template <class F>
BINADE_INLINE void each_vector(int64_t channels, const F& f) {
  int64_t c = 0;
  for (; c + kWidth <= channels; c += kWidth) {
    f(c, kWidth, Whole<true>{});
  }
  if (c < channels) {
    f(c, static_cast<int>(channels - c), Whole<false>{});
  }
}

template <class T, int kSide, class Out>
BINADE_INLINE void transform_patch(const Patch<kSide>& p, int64_t channels, const Out& out) {
  each_vector(channels, [&](int64_t c, int n, auto whole) {
    transform<T>([&](int i, int j) { return read<decltype(whole)::kValue>(p.pixels[i][j] + c, n); },
                 [&](int i, int j, V v) { out(c, i * 6 + j, v); });
  });
}

template <bool kWhole>
BINADE_INLINE void output_vector(const WinogradOutput& a, const Patch<kWinogradTile>& p,
                                 const float* m, int64_t c, int n) {
  const V bias = a.bias ? read<kWhole>(a.bias + c, n) : V{};
  transform<Output>([&](int i, int j) { return load(m + (i * 6 + j) * a.m.plane + c); },
                    [&](int i, int j, V v) {
                      if (i >= p.rows || j >= p.columns) {
                        return;
                      }
                      v += bias;
                      if (a.relu) {
                        v = v < V{} ? V{} : v;  // keeps NaN
                      }
                      write<kWhole>(p.pixels[i][j] + c, v, n);
                    });
}

}  // namespace

void winograd_input(const WinogradInput& a) {
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const Patch<6> p = patch_of<6>(a.x, a.tiles, a.tiles.first + t, a.top, a.left);
    float* v = a.v.data + t * a.v.row;
    transform_patch<Input, 6>(
        p, a.x.channels, [&](int64_t c, int f, V number) { store(v + f * a.v.plane + c, number); });
  }
}

void winograd_output(const WinogradOutput& a) {
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const auto p = patch_of<kWinogradTile>(a.y, a.tiles, a.tiles.first + t, 0, 0);
    const float* m = a.m.data + t * a.m.row;
    each_vector(a.y.channels, [&](int64_t c, int n, auto whole) {
      output_vector<decltype(whole)::kValue>(a, p, m, c, n);
    });
  }
}

void winograd_output_gradient(const WinogradOutputGradient& a) {
  constexpr int64_t kPanel = 2 * kWidth;
  const int64_t channels = a.dy.channels;
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const auto p = patch_of<kWinogradTile>(a.dy, a.tiles, a.tiles.first + t, 0, 0);
    const int64_t row = a.first_row + t;
    transform_patch<OutputGradient>(p, channels, [&](int64_t c, int f, V number) {
      const int64_t panel = c / kPanel * kPanel;
      const int64_t width = channels - panel > kWidth ? kPanel : kWidth;
      float* z = a.z.data + panel * a.total_rows + row * width + (c - panel);
      store(z + f * a.z.plane, number);
    });
  }
}

void winograd_weight(const WinogradWeight& a) {
  const int64_t step = a.turned ? -a.tap_stride : a.tap_stride;
  const float* taps = a.taps + (a.turned ? (kWinogradTaps - 1) * a.tap_stride : 0);
  for (int64_t i = 0; i < a.count; i += kWidth) {
    transform<Weight>([&](int r, int s) { return load(taps + (r * 3 + s) * step + i); },
                      [&](int r, int s, V v) { store(a.u.data + (r * 6 + s) * a.u.plane + i, v); });
  }
}

void winograd_weight_gradient(const WinogradWeightGradient& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t i = 0; i < a.columns; i += kWidth) {
      const float* du = a.du.data + row * a.du.row + i;
      float* taps = a.taps + row * a.tap_row + i;
      transform<WeightGradient>(
          [&](int r, int s) {
            const float* from = du + (r * 6 + s) * a.du.plane;
            V sum = load(from);
            for (int64_t partial = 1; partial < a.partials; ++partial) {
              sum += load(from + partial * a.partial_stride);
            }
            return sum;
          },
          [&](int r, int s, V v) {
            float* tap = taps + (r * 3 + s) * a.tap_stride;
            store(tap, a.accumulate ? v + load(tap) : v);
          });
    }
  }
}

}  // namespace binade::kernels::BINADE_ISA
