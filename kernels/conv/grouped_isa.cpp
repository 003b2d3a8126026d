// The loops of kernels/conv/grouped_isa_internal.h. Tiles hold a few pixels of one vector of
// channels.
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/conv/grouped_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

#define BINADE_UNROLL _Pragma("GCC unroll 16")

constexpr bool kManyRegisters = kVectorBytes == 64;

// The number of pixels in a tile: its accumulators and the operands of one tap fit the registers.
template <int kSlots>
constexpr int kPixels = kSlots == 1   ? 8
                        : kSlots == 2 ? (kManyRegisters ? 8 : 4)
                        : kSlots == 4 ? (kManyRegisters ? 6 : 2)
                                      : (kManyRegisters ? 3 : 1);

// Taps of the weight's gradient that are summed together; the last ones may be repeated.
template <int kSlots>
constexpr int kTaps = kSlots == 1   ? 9
                      : kSlots == 2 ? (kManyRegisters ? 9 : 5)
                      : kSlots == 4 ? (kManyRegisters ? 5 : 3)
                                    : (kManyRegisters ? 3 : 1);
// The same for kernels of up to 4 taps; 1 if there are many slots.
template <int kSlots>
constexpr int kFewTaps = kSlots == 1   ? 4
                         : kSlots == 2 ? 3
                                       : 1;

// Lanes of `v` at the places `from`.
BINADE_INLINE Vector<float> permuted(Vector<float> v, const int32_t* from) {
#if defined(__AVX512F__)
  return bits_as<Vector<float>>(
      _mm512_maskz_permutexvar_ps(0xffff, _mm512_loadu_si512(from), bits_as<__m512>(v)));
#elif defined(__AVX2__)
  return bits_as<Vector<float>>(_mm256_permutevar8x32_ps(
      bits_as<__m256>(v), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#else
  Vector<float> result{};
  for (int i = 0; i < kLanes<float>; ++i) {
    result[i] = v[from[i]];
  }
  return result;
#endif
}
BINADE_INLINE Vector<double> permuted(Vector<double> v, const int32_t* from) {
#if defined(__AVX512F__)
  const __m512i lanes =
      _mm512_maskz_cvtepi32_epi64(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  return bits_as<Vector<double>>(_mm512_maskz_permutexvar_pd(0xff, lanes, bits_as<__m512d>(v)));
#else
  Vector<double> result{};
  for (int i = 0; i < kLanes<double>; ++i) {
    result[i] = v[from[i]];
  }
  return result;
#endif
}

// y[j] = sum_k a_k[(j - k) mod width]
template <class C, int kSlots>
BINADE_INLINE Vector<C> joined(const GroupedPixels& a, const Vector<C> (&sums)[kSlots]) {
  Vector<C> sum = sums[0];
  BINADE_UNROLL
  for (int k = 1; k < kSlots; ++k) {
    if (k < a.lanes.width) {
      sum += permuted(sums[k], a.rotations + k * a.lanes.lanes);
    }
  }
  return sum;
}

// Applies the epilogue to the sums of `n` channels from channel c of a pixel.
template <class C, bool kPart>
BINADE_INLINE Vector<C> with_epilogue(const GroupedPixels& a, Vector<C> sum, int64_t pixel,
                                      int64_t c, int64_t n) {
  const TileEpilogue& e = a.epilogue;
  if (e.scale) {
    sum *= load(reinterpret_cast<const C*>(e.scale) + c);
  }
  if (e.bias) {
    sum += load(reinterpret_cast<const C*>(e.bias) + c);
  }
  if (e.operand) {
    sum += load_some<kPart>(reinterpret_cast<const C*>(e.operand) + pixel * a.y_step + c, n);
  }
  if (e.relu) {
    sum = sum < Vector<C>{} ? Vector<C>{} : sum;  // keeps NaN
  }
  return sum;
}

// Prefetches the operands of the same tile in the next row, for one vector of channels: the sources
// are `at` elements after the taps.
template <class C, int kCount>
BINADE_INLINE void prefetch_next(const GroupedPixels& a, int64_t pixel, int64_t at, const C* y) {
  if (a.new_rows == 0 || a.tap_count == 0) {
    return;
  }
  const C* last = static_cast<const C*>(a.taps[a.tap_count - 1].x) + at;
  for (int64_t row = 1; row <= a.new_rows; ++row) {
    for (int64_t column = 0; column < a.new_columns; ++column) {
      const C* x = last + row * a.x_row - column * a.x_column;
      BINADE_UNROLL
      for (int p = 0; p < kCount; ++p) {
        prefetch(x + p * a.x_step);
      }
    }
  }
  BINADE_UNROLL
  for (int p = 0; p < kCount; ++p) {
    prefetch(y + a.y_row + (pixel + p) * a.y_step);
  }
}

// Computes `kCount` pixels from `pixel` for one vector of channels, whose first channel is c.
template <class C, int kSlots, int kCount, bool kPart>
BINADE_INLINE void tile(const GroupedPixels& a, int64_t pixel, int64_t vector, int64_t c,
                        int64_t n) {
  Vector<C> sums[kCount][kSlots] = {};
  const int64_t at = pixel * a.x_step + c, w_at = vector * a.w_step;
  for (int64_t t = 0; t < a.tap_count; ++t) {
    const C* x = static_cast<const C*>(a.taps[t].x) + at;
    const C* w = static_cast<const C*>(a.taps[t].w) + w_at;
    Vector<C> pixels[kCount];
    BINADE_UNROLL
    for (int p = 0; p < kCount; ++p) {
      pixels[p] = load_some<kPart>(x + p * a.x_step, n);
    }
    BINADE_UNROLL
    for (int k = 0; k < kSlots; ++k) {
      const Vector<C> weight = load(w + k * kLanes<C>);
      BINADE_UNROLL
      for (int p = 0; p < kCount; ++p) {
        sums[p][k] += pixels[p] * weight;
      }
    }
  }
  C* y = static_cast<C*>(a.y) + c;
  prefetch_next<C, kCount>(a, pixel, at, y);
  BINADE_UNROLL
  for (int p = 0; p < kCount; ++p) {
    const Vector<C> sum = joined<C, kSlots>(a, sums[p]);
    store_some<kPart>(y + (pixel + p) * a.y_step, with_epilogue<C, kPart>(a, sum, pixel + p, c, n),
                      n);
  }
}

template <class C, int kSlots, int kCount>
void tile_of_pixels(const GroupedPixels& a, int64_t pixel) {
  const int64_t channels = a.lanes.channels(), step = a.lanes.step;
  for (int64_t vector = 0; vector * step < channels; ++vector) {
    const int64_t c = vector * step;
    if (step == kLanes<C> && c + step <= channels) {
      tile<C, kSlots, kCount, false>(a, pixel, vector, c, step);
    } else {
      tile<C, kSlots, kCount, true>(a, pixel, vector, c, channels - c < step ? channels - c : step);
    }
  }
}

template <class C, int kSlots>
void run_of_pixels(const GroupedPixels& a) {
  constexpr int kWhole = kPixels<kSlots>, kHalf = (kWhole + 1) / 2;
  int64_t i = 0;
  for (; i + kWhole <= a.pixels; i += kWhole) {
    tile_of_pixels<C, kSlots, kWhole>(a, i);
  }
  for (; i + kHalf <= a.pixels; i += kHalf) {
    tile_of_pixels<C, kSlots, kHalf>(a, i);
  }
  for (; i < a.pixels; ++i) {
    tile_of_pixels<C, kSlots, 1>(a, i);
  }
}

template <class C, int kSlots, int kCount, bool kPart>
void weight_sums(const GroupedWeightSums& a, int64_t tap) {
  Vector<C> sums[kCount][kSlots] = {};
  int64_t offsets[kCount];
  BINADE_UNROLL
  for (int t = 0; t < kCount; ++t) {
    offsets[t] = a.offsets[tap + t < a.tap_count ? tap + t : a.tap_count - 1];
  }
  for (int64_t line = 0; line < a.images * a.rows; ++line) {
    const int64_t image = line / a.rows, row = line % a.rows;
    const C* x = static_cast<const C*>(a.x) + image * a.x_image + row * a.x_row;
    const C* dy = static_cast<const C*>(a.dy) + image * a.dy_image + row * a.dy_row;
    for (int64_t i = 0; i < a.columns; ++i, x += a.x_column, dy += a.dy_column) {
      const Vector<C> g = load_some<kPart>(dy, a.count);
      Vector<C> pixels[kCount];
      BINADE_UNROLL
      for (int t = 0; t < kCount; ++t) {
        pixels[t] = load(x + offsets[t]);
      }
      BINADE_UNROLL
      for (int k = 0; k < kSlots; ++k) {
        const Vector<C> rotated = k == 0 ? g : permuted(g, a.rotations + k * kLanes<C>);
        BINADE_UNROLL
        for (int t = 0; t < kCount; ++t) {
          sums[t][k] += pixels[t] * rotated;
        }
      }
    }
  }
  for (int t = 0; t < kCount && tap + t < a.tap_count; ++t) {
    for (int k = 0; k < kSlots; ++k) {
      C* sum = static_cast<C*>(a.sums) + ((tap + t) * kSlots + k) * kLanes<C>;
      store(sum, a.accumulate ? load(sum) + sums[t][k] : sums[t][k]);
    }
  }
}

template <class C, int kSlots, bool kPart>
void all_weight_sums(const GroupedWeightSums& a) {
  int64_t tap = 0;
  if constexpr (kFewTaps<kSlots> < kTaps<kSlots>) {
    for (; a.tap_count - tap > kFewTaps<kSlots>; tap += kTaps<kSlots>) {
      weight_sums<C, kSlots, kTaps<kSlots>, kPart>(a, tap);
    }
  }
  for (; tap < a.tap_count; tap += kFewTaps<kSlots>) {
    weight_sums<C, kSlots, kFewTaps<kSlots>, kPart>(a, tap);
  }
}

// Calls f(Type<C>, Slots) for the compute dtype and the accumulators of a call.
template <int kValue>
struct Slots {
  static constexpr int kCount = kValue;
};
template <class C, class F>
BINADE_INLINE void dispatch_slots(int64_t slots, const F& f) {
  switch (slots) {
    case 1: return f(Type<C>{}, Slots<1>{});
    case 2: return f(Type<C>{}, Slots<2>{});
    case 4: return f(Type<C>{}, Slots<4>{});
    default: return f(Type<C>{}, Slots<8>{});
  }
}
template <class F>
BINADE_INLINE void dispatch_kernel(DType compute, int64_t slots, const F& f) {
  compute == DType::f64 ? dispatch_slots<double>(slots, f) : dispatch_slots<float>(slots, f);
}

template <class C>
void expand(const GroupedExpansion& a) {
  const C* from = static_cast<const C*>(a.pixels);
  C* to = static_cast<C*>(a.expanded);
  for (int64_t i = 0; i < a.count; ++i, from += a.pixel_step, to += a.elements) {
    for (int64_t e = 0; e < a.elements; ++e) {
      to[e] = from[a.channels[e]];
    }
  }
}

}  // namespace

void grouped_pixels(const GroupedPixels& a) {
  dispatch_kernel(a.compute, a.lanes.slots,
                  [&]<class C, class S>(Type<C>, S) { run_of_pixels<C, S::kCount>(a); });
}

void grouped_weight_sums(const GroupedWeightSums& a) {
  dispatch_kernel(a.compute, a.lanes.slots, [&]<class C, class S>(Type<C>, S) {
    a.count < kLanes<C> ? all_weight_sums<C, S::kCount, true>(a)
                        : all_weight_sums<C, S::kCount, false>(a);
  });
}

void grouped_expand(const GroupedExpansion& a) {
  a.compute == DType::f64 ? expand<double>(a) : expand<float>(a);
}

}  // namespace binade::kernels::BINADE_ISA
