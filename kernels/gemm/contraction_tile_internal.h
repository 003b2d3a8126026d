// Register tiles of one instruction set (kernels/gemm/contraction_internal.h). The largest is 14 x
// 2 vectors with the 32 registers of AVX-512, 6 x 2 with the 16 of the others: accumulators fill
// the register file but for the two vectors of b and the broadcast of a. Included by sources that
// are compiled per instruction set only (kernels/base/isa.h has their rules).
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_vector_internal.h>

#include <type_traits>

namespace binade::kernels::BINADE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kMaxRows = 14;
#define BINADE_UNROLL_SUM _Pragma("GCC unroll 2")
#else
constexpr int kMaxRows = 6;
#define BINADE_UNROLL_SUM _Pragma("GCC unroll 4")
#endif

// Loops over registers must unroll completely, or the accumulators live in memory.
#define BINADE_UNROLL _Pragma("GCC unroll 14")

template <class Sum, int kRows, int kVectors>
struct Sums {
  Vector<Sum> at[kRows][kVectors];
};

// Adds what the tile's flags ask for and writes the sums, rounded where C is narrower.
template <class T, class Sum, int kRows, int kVectors, class C>
BINADE_INLINE void finish(const Tile<T>& t, Sums<Sum, kRows, kVectors>& sums, C* target) {
  BINADE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    C* c = target + v * kLanes<Sum>;
    const int64_t left = t.columns - v * kLanes<Sum>;
    const int count = static_cast<int>(left < 0 ? 0 : left);
    const bool full = left >= kLanes<Sum>;
    if (t.accumulate) {
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sums.at[i][v] += full ? load(c + i * t.c_row) : load(c + i * t.c_row, count);
      }
    }
    if (t.scale) {
      const Vector<Sum> scale = load(t.scale + v * kLanes<Sum>);
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sums.at[i][v] *= scale;
      }
    }
    if (t.bias) {
      const Vector<Sum> bias = load(t.bias + v * kLanes<Sum>);
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sums.at[i][v] += bias;
      }
    }
    const Sum* other = t.plus || t.times ? t.other + v * kLanes<Sum> : nullptr;
    if (t.plus) {
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const Sum* terms = other + i * t.other_row;
        sums.at[i][v] += full ? load(terms) : load(terms, count);
      }
    }
    if (t.relu) {
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {  // keeps NaN
        sums.at[i][v] = sums.at[i][v] < Vector<Sum>{} ? Vector<Sum>{} : sums.at[i][v];
      }
    }
    if (t.times) {
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const Sum* factors = other + i * t.other_row;
        sums.at[i][v] *= full ? load(factors) : load(factors, count);
      }
    }
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      full ? store(c + i * t.c_row, sums.at[i][v]) : store(c + i * t.c_row, sums.at[i][v], count);
    }
  }
}

// The same for what `rounded` says that c holds.
template <class T, class Sum, int kRows, int kVectors>
BINADE_INLINE void finish_rounded(const Tile<T>& t, Sums<Sum, kRows, kVectors>& sums) {
  if constexpr (std::is_same_v<Sum, float>) {
    if (t.rounded == Rounded::bf16) {
      return finish(t, sums, static_cast<bfloat16*>(t.c));
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (t.rounded == Rounded::f16) {
      return finish(t, sums, static_cast<half*>(t.c));
    }
  }
  finish(t, sums, static_cast<Sum*>(t.c));
}

// A step of k: a factor of each row of a times a row of b.
template <class T>
struct Step {
  using Factor = T;
  using Row = Vector<T>;
  BINADE_INLINE static Factor factor(const T* a) { return *a; }
  BINADE_INLINE static Row row(const T* b) { return load(b); }
  BINADE_INLINE static Vector<T> add(Vector<T> sum, Factor factor, Row row) {
    return sum + factor * row;
  }
};

#if defined(__AVX512BF16__)
// Two of k. The products are exact; the processor rounds sums to nearest, and takes subnormal
// numbers, in and out, for 0.
template <>
struct Step<BfloatPair> {
  using Factor = __m512bh;
  using Row = __m512bh;
  BINADE_INLINE static Factor factor(const BfloatPair* a) {
    int bits;
    __builtin_memcpy(&bits, a, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
  }
  BINADE_INLINE static Row row(const BfloatPair* b) { return (__m512bh)_mm512_loadu_si512(b); }
  BINADE_INLINE static Vector<float> add(Vector<float> sum, Factor factor, Row row) {
    return _mm512_dpbf16_ps(sum, row, factor);
  }
};
#endif

// Operands are looked for ahead, where no hardware does: in rows of a, at the tile below, a line at
// a time; where a and b advance by strides, which may be pages, some steps on.
constexpr int64_t kLine = 64, kAhead = 16;

// Rows of the results, and of what they will meet, on their way while the sums are made: a few
// every so many steps, for all at once would keep everything else from the processor's fill
// buffers.
template <int64_t kRowBytes, int kRowsOfPart>
class ResultsAhead {
 public:
  ResultsAhead(const char* c, int64_t c_row, const char* other, int64_t other_row, int64_t rows,
               int64_t parts)
      : c_(c), other_(other), c_row_(c_row), other_row_(other_row), left_(rows) {
    for (int64_t extra = rows - kRowsOfPart * parts; extra > 0; --extra) {
      row();
    }
  }
  BINADE_INLINE void part() {
    for (int i = 0; i < kRowsOfPart && left_ > 0; ++i) {
      row();
    }
  }

 private:
  BINADE_INLINE void row() {
    __builtin_prefetch(c_, 1);
    __builtin_prefetch(c_ + kRowBytes - 1, 1);
    c_ += c_row_;
    if (other_) {
      __builtin_prefetch(other_);
      __builtin_prefetch(other_ + kRowBytes - 1);
      other_ += other_row_;
    }
    --left_;
  }

  const char *c_, *other_;
  int64_t c_row_, other_row_, left_;
};

// A line of `count` rows from row `first`.
template <int kRows, class T>
BINADE_INLINE void rows_ahead(const T* a, int64_t a_row, int64_t first, int64_t count) {
  if (count == kRows) {
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      __builtin_prefetch(a + i * a_row);
    }
    return;
  }
  for (int64_t i = first; i < first + count; ++i) {
    __builtin_prefetch(a + i * a_row);
  }
}

template <class T, int kRows, int kVectors, bool kRowsContiguous>
void tile(const Tile<T>& t) {
  using Sum = typename Tile<T>::Sum;
  Sums<Sum, kRows, kVectors> sums;
  BINADE_UNROLL
  for (int i = 0; i < kRows; ++i) {
    BINADE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums.at[i][v] = Vector<Sum>{};
    }
  }
  constexpr int64_t kChunk = (kRowsContiguous ? 4 : 1) * kLine / int64_t{sizeof(T)};  // steps
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step, length = t.length;
  const int64_t c_size = t.rounded == Rounded::no ? sizeof(Sum) : sizeof(half);
  ResultsAhead<kVectors * kLanes<Sum> * int64_t{sizeof(Sum)}, kRowsContiguous ? 7 : 2> ahead(
      static_cast<const char*>(t.c), t.c_row * c_size, reinterpret_cast<const char*>(t.other),
      t.other_row * int64_t{sizeof(*t.other)}, kRows, t.segments * (length / kChunk));
  const T* b = t.b;
  for (int64_t s = 0; s < t.segments; ++s) {
    const T* a = t.a + t.offsets[s];
    for (int64_t left = length; left > 0; left -= kChunk) {
      if (!kRowsContiguous && left >= kChunk) {
        rows_ahead<kRows>(a + kRows * a_row, a_row, t.below, t.below_rows);
      }
      ahead.part();
      const int64_t steps = left < kChunk ? left : kChunk;
      BINADE_UNROLL_SUM
      for (int64_t k = 0; k < steps; ++k) {
        if (kRowsContiguous) {
          __builtin_prefetch(a + kAhead * a_step);
          __builtin_prefetch(a + kAhead * a_step + kRows - 1);
          BINADE_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            __builtin_prefetch(b + kAhead * b_step + v * kLanes<T>);
          }
        }
        typename Step<T>::Row row[kVectors];
        BINADE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          row[v] = Step<T>::row(b + v * kLanes<T>);
        }
        BINADE_UNROLL
        for (int i = 0; i < kRows; ++i) {
          const auto factor = Step<T>::factor(kRowsContiguous ? a + i : a + i * a_row);
          BINADE_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            sums.at[i][v] = Step<T>::add(sums.at[i][v], factor, row[v]);
          }
        }
        a += kRowsContiguous ? a_step : 1;
        b += b_step;
      }
    }
  }
  finish_rounded(t, sums);
}

template <class T, int... kRow>
TileSet<T> make_tile_set(Indices<kRow...>) {
  static constexpr TileFunction<T> kFunctions[] = {
      tile<T, kRow + 1, 1, false>..., tile<T, kRow + 1, 1, true>..., tile<T, kRow + 1, 2, false>...,
      tile<T, kRow + 1, 2, true>...};
  return {kMaxRows, kLanes<T>, kFunctions};
}

#if defined(__AVX512F__)
using TileRows = Indices<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13>;
#else
using TileRows = Indices<0, 1, 2, 3, 4, 5>;
#endif

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
