// The transforms of kernels/conv/winograd_internal.h, vectorised over channels. A two-dimensional
// transform is the one-dimensional transform along the columns, then along the rows.
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/conv/winograd_matrices_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int kWidth = kLanes<float>;

#define BINADE_UNROLL _Pragma("GCC unroll 6")

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

// Loads n channels as a vector of f32; the other lanes are 0.
template <bool kWhole, class T>
BINADE_INLINE V read(const T* p, int n) {
  if constexpr (kWhole) {
    return load(p);
  } else {
    return load(p, n);
  }
}
template <bool kWhole, class T>
BINADE_INLINE void write(T* p, V v, int n) {
  if constexpr (kWhole) {
    store(p, v);
  } else {
    store(p, v, n);
  }
}

// The addresses of the pixels of a window; pixels outside the image are zeros.
template <class T, int kSide>
struct Patch {
  T* pixels[kSide][kSide];
  int rows, columns;  // inside the image, of a window that starts there
};

BINADE_INLINE int clip(int64_t i, int side) {
  return static_cast<int>(i < 0 ? 0 : i > side ? side : i);
}

// The window of tile number `tile` whose corner lies (top, left) before the tile's.
template <class T, int kSide>
BINADE_INLINE Patch<T, kSide> patch_of(const WinogradImages& x, const WinogradTiles& tiles,
                                       int64_t tile, int64_t top, int64_t left) {
  const int64_t image = tile / (tiles.high * tiles.wide), place = tile % (tiles.high * tiles.wide);
  const int64_t row0 = place / tiles.wide * kWinogradTile - top,
                column0 = place % tiles.wide * kWinogradTile - left;
  T* data = reinterpret_cast<T*>(x.data);
  Patch<T, kSide> p;
  p.rows = clip(x.rows - row0, kSide);
  p.columns = clip(x.columns - column0, kSide);
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      const int64_t row = row0 + i, column = column0 + j;
      const bool inside = row >= 0 && row < x.rows && column >= 0 && column < x.columns;
      p.pixels[i][j] =
          inside ? data + image * x.image_stride + row * x.row_stride + column * x.column_stride
                 : reinterpret_cast<T*>(x.zeros);
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

template <class Matrix, class T, int kSide, class Out>
BINADE_INLINE void transform_patch(const Patch<T, kSide>& p, int64_t channels, const Out& out) {
  each_vector(channels, [&](int64_t c, int n, auto whole) {
    transform<Matrix>(
        [&](int i, int j) { return read<decltype(whole)::kValue>(p.pixels[i][j] + c, n); },
        [&](int i, int j, V v) { out(c, i * 6 + j, v); });
  });
}

template <bool kWhole, class T>
BINADE_INLINE void output_vector(const WinogradOutput& a, const Patch<T, kWinogradTile>& p,
                                 const Patch<T, kWinogradTile>& residual, const float* m, int64_t c,
                                 int n) {
  const TileEpilogue& e = a.epilogue;
  const float *biases = reinterpret_cast<const float*>(e.bias),
              *scales = reinterpret_cast<const float*>(e.scale);
  const V bias = biases ? read<kWhole>(biases + c, n) : V{};
  const V scale = scales ? read<kWhole>(scales + c, n) : V{} + 1.0F;
  transform<Output>([&](int i, int j) { return load(m + (i * 6 + j) * a.m.plane + c); },
                    [&](int i, int j, V v) {
                      if (i >= p.rows || j >= p.columns) {
                        return;
                      }
                      v = v * scale + bias;
                      if (a.residual.data) {
                        v += read<kWhole>(residual.pixels[i][j] + c, n);
                      }
                      if (e.relu) {
                        v = v < V{} ? V{} : v;  // keeps NaN
                      }
                      write<kWhole>(p.pixels[i][j] + c, v, n);
                    });
}

template <class T>
void input_of(const WinogradInput& a) {
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const auto p = patch_of<T, 6>(a.x, a.tiles, a.tiles.first + t, a.top, a.left);
    float* v = a.v.data + t * a.v.row;
    transform_patch<Input>(
        p, a.x.channels, [&](int64_t c, int f, V number) { store(v + f * a.v.plane + c, number); });
  }
}

template <class T>
void output_of(const WinogradOutput& a) {
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const auto patch = [&](const WinogradImages& images) {
      return patch_of<T, kWinogradTile>(images, a.tiles, a.tiles.first + t, 0, 0);
    };
    const auto p = patch(a.y), residual = a.residual.data ? patch(a.residual) : p;
    const float* m = a.m.data + t * a.m.row;
    each_vector(a.y.channels, [&](int64_t c, int n, auto whole) {
      output_vector<decltype(whole)::kValue>(a, p, residual, m, c, n);
    });
  }
}

template <class T>
void output_gradient_of(const WinogradOutputGradient& a) {
  constexpr int64_t kPanel = 2 * kWidth;
  const int64_t channels = a.dy.channels;
  for (int64_t t = 0; t < a.tiles.count; ++t) {
    const auto p = patch_of<T, kWinogradTile>(a.dy, a.tiles, a.tiles.first + t, 0, 0);
    const int64_t row = a.first_row + t;
    transform_patch<OutputGradient>(p, channels, [&](int64_t c, int f, V number) {
      const int64_t panel = c / kPanel * kPanel;
      const int64_t width = channels - panel > kWidth ? kPanel : kWidth;
      float* z = a.z.data + panel * a.total_rows + row * width + (c - panel);
      store(z + f * a.z.plane, number);
    });
  }
}

}  // namespace

void winograd_input(const WinogradInput& a) {
  switch (a.x.dtype) {
    case DType::f16: return input_of<half>(a);
    case DType::bf16: return input_of<bfloat16>(a);
    default: return input_of<float>(a);
  }
}

void winograd_output(const WinogradOutput& a) {
  switch (a.y.dtype) {
    case DType::f16: return output_of<half>(a);
    case DType::bf16: return output_of<bfloat16>(a);
    default: return output_of<float>(a);
  }
}

void winograd_output_gradient(const WinogradOutputGradient& a) {
  switch (a.dy.dtype) {
    case DType::f16: return output_gradient_of<half>(a);
    case DType::bf16: return output_gradient_of<bfloat16>(a);
    default: return output_gradient_of<float>(a);
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
