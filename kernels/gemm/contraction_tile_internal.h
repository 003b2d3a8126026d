// Register tiles of one instruction set (kernels/gemm/contraction_internal.h). The largest is 14 x
// 2 vectors with the 32 registers of AVX-512, 6 x 2 with the 16 of the others: accumulators fill
// the register file except for the two vectors of b and the broadcast of a. Only sources that are
// compiled per instruction set may include it (rules: kernels/base/isa.h).
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

// Loops over registers must unroll completely, or the compiler keeps the accumulators in memory.
#define BINADE_UNROLL _Pragma("GCC unroll 14")

template <class Sum, int kRows, int kVectors>
struct Sums {
  Vector<Sum> at[kRows][kVectors];
};

// A vector of the columns of a tile: the first column, and how many are stored.
template <class Sum>
struct Columns {
  int64_t first;
  int count;
  bool whole;

  BINADE_INLINE Columns(int64_t columns, int v) : first(v * kLanes<Sum>) {
    const int64_t left = columns - first;
    count = static_cast<int>(left < 0 ? 0 : left);
    whole = left >= kLanes<Sum>;
  }
};

// Applies the epilogue to one vector of columns of the sums, except what depends on C: adding to
// the target and storing.
template <class Sum, int kRows, int kVectors>
BINADE_INLINE void apply_epilogue(const TileEpilogue& e, const Columns<Sum>& at, int v,
                                  Sums<Sum, kRows, kVectors>& sums) {
  constexpr bool kHasAll = std::is_same_v<Sum, float>;
  const Sum* operand = reinterpret_cast<const Sum*>(e.operand) + at.first;
  if (kHasAll && e.scale) {
    const Vector<Sum> scale = load(reinterpret_cast<const Sum*>(e.scale) + at.first);
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      sums.at[i][v] *= scale;
    }
  }
  if (e.bias) {
    const Vector<Sum> bias = load(reinterpret_cast<const Sum*>(e.bias) + at.first);
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      sums.at[i][v] += bias;
    }
  }
  if (kHasAll && e.use == TileOperand::residual) {
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Sum* terms = operand + i * e.operand_row;
      sums.at[i][v] += at.whole ? load(terms) : load(terms, at.count);
    }
  }
  if (e.relu) {
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {  // keeps NaN
      sums.at[i][v] = sums.at[i][v] < Vector<Sum>{} ? Vector<Sum>{} : sums.at[i][v];
    }
  }
  if (kHasAll && e.use == TileOperand::factor) {
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Sum* factors = operand + i * e.operand_row;
      sums.at[i][v] *= at.whole ? load(factors) : load(factors, at.count);
    }
  }
}

// Stores the sums through the tile's epilogue; c holds C.
template <class C, class T, class Sum, int kRows, int kVectors>
BINADE_INLINE void store_as(const Tile<T>& t, Sums<Sum, kRows, kVectors>& sums) {
  BINADE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Columns<Sum> at(t.columns, v);
    C* c = static_cast<C*>(t.c) + at.first;
    if (t.epilogue.accumulate) {
      BINADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sums.at[i][v] += at.whole ? load(c + i * t.c_row) : load(c + i * t.c_row, at.count);
      }
    }
    apply_epilogue(t.epilogue, at, v, sums);
    BINADE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      at.whole ? store(c + i * t.c_row, sums.at[i][v])
               : store(c + i * t.c_row, sums.at[i][v], at.count);
    }
  }
}

// The same for the dtype that the epilogue rounds to.
template <class T, class Sum, int kRows, int kVectors>
BINADE_INLINE void store_sums(const Tile<T>& t, Sums<Sum, kRows, kVectors>& sums) {
  if constexpr (std::is_same_v<Sum, float>) {
    if (t.epilogue.rounded == Rounded::bf16) {
      return store_as<bfloat16>(t, sums);
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (t.epilogue.rounded == Rounded::f16) {
      return store_as<half>(t, sums);
    }
  }
  store_as<Sum>(t, sums);
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
// Two elements of k. The products are exact; the processor rounds sums to nearest and treats
// subnormal inputs and results as 0.
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

// Operands are prefetched where the hardware does not do it. Rows of a: the rows of the next tile,
// one cache line at a time. Operands with a stride between steps, which may be pages: some steps
// ahead.
constexpr int64_t kLine = 64, kAhead = 16;

// Prefetches rows of the results and of the epilogue's operand while the sums are computed: a few
// at a time, since all at once would fill the processor's line fill buffers.
template <int64_t kRowBytes, int kRowsOfPart>
class ResultsAhead {
 public:
  template <class T>
  BINADE_INLINE ResultsAhead(const Tile<T>& t, int64_t rows, int64_t parts)
      : c_(static_cast<const char*>(t.c)),
        operand_(reinterpret_cast<const char*>(t.epilogue.operand)),
        c_row_(t.c_row * t.epilogue.stored(sizeof(typename Tile<T>::Sum))),
        operand_row_(t.epilogue.operand_row * int64_t{sizeof(typename Tile<T>::Sum)}),
        left_(rows) {
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
    if (operand_) {
      __builtin_prefetch(operand_);
      __builtin_prefetch(operand_ + kRowBytes - 1);
      operand_ += operand_row_;
    }
    --left_;
  }

  const char *c_, *operand_;
  int64_t c_row_, operand_row_, left_;
};

// Prefetches a line of `count` rows from row `first`.
template <int kRows, class T>
BINADE_INLINE void prefetch_rows(const T* a, int64_t a_row, int64_t first, int64_t count) {
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
  const int64_t a_row = t.sum.a_row, a_step = t.sum.a_step, b_step = t.b_step,
                length = t.sum.length;
  ResultsAhead<kVectors * kLanes<Sum> * int64_t{sizeof(Sum)}, kRowsContiguous ? 7 : 2> ahead(
      t, kRows, t.sum.segments * (length / kChunk));
  const T* b = t.b;
  for (int64_t s = 0; s < t.sum.segments; ++s) {
    const T* a = t.a + t.sum.offsets[s];
    for (int64_t left = length; left > 0; left -= kChunk) {
      if (!kRowsContiguous && left >= kChunk) {
        prefetch_rows<kRows>(a + kRows * a_row, a_row, t.next_row, t.next_rows);
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
  store_sums(t, sums);
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
