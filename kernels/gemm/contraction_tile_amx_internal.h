// Tiles of pairs of bf16 by AMX: up to 32 rows and 32 columns in four accumulators. An instruction
// (tdpbf16ps) multiplies 16 pairs of k: it sums the even products and the odd ones separately, adds
// the two, and adds the result to the accumulator. Groups of 16 pairs start at the first pair of
// each segment, or of the first segment if steps of a are transposed, so the order of sums depends
// on k alone. Only *_amx_bf16.cpp files may include it (rules: kernels/base/isa.h).
//
// An accumulator has 16 rows, or all rows of a smaller tile. The two halves of a tile of 17 to 32
// rows overlap, and rows in both are computed twice with the same result. So no row outside of a is
// read, and one configuration of the tile registers serves all tiles of a product. Fewer than 16
// pairs are copied and padded with zeros.
#pragma once
#include <binade/kernels/gemm/contraction_tile_internal.h>
#include <binade/kernels/gemm/pair_packing_internal.h>

#if defined(__AMX_BF16__) || defined(__AMXBF16__)  // the name in clang++ 14

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int kTileRows = 16;  // of a tile register, of 64 bytes each
constexpr int kAmxRows = 2 * kTileRows;

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Registers 0 to 3 hold sums [row half][column half], 4 and 5 hold a, 6 and 7 b.
struct TileConfigurations {
  TileConfiguration of[kTileRows + 1];

  constexpr TileConfigurations() : of{} {
    for (int rows = 1; rows <= kTileRows; ++rows) {
      for (int i = 0; i < 8; ++i) {
        of[rows].row_bytes[i] = 64;
        of[rows].rows[i] = static_cast<uint8_t>(i < 6 ? rows : kTileRows);
      }
    }
  }
};
constexpr TileConfigurations kTileConfigurations;

thread_local int configured_rows = 0;

// While one exists, tiles may be multiplied. Its destructor clears the tile registers: otherwise
// every thread switch would save and load them.
struct TileRegisters {
  TileRegisters() = default;
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
  ~TileRegisters() {
    if (configured_rows) {
      _tile_release();
      configured_rows = 0;
    }
  }
  static void configure(int rows) {
    if (rows != configured_rows) {
      _tile_loadconfig(&kTileConfigurations.of[rows]);
      configured_rows = rows;
    }
  }
};

// Keeps stores before tile loads: the intrinsics of g++ 12 do not declare that they read memory.
BINADE_INLINE void before_tile_loads() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// Up to 16 steps of a tile: a by rows, b by steps.
struct AmxSteps {
  const BfloatPair* a[2];  // per row half
  int64_t a_row;
  const BfloatPair* b;
  int64_t b_step;
};

// target[row][step], zeros after the last step.
BINADE_INLINE void copy_rows(const BfloatPair* a, int64_t a_row, int rows, int64_t steps,
                             BfloatPair* target) {
  for (int i = 0; i < rows; ++i) {
    _mm512_storeu_si512(target + i * kPairs, _mm512_maskz_loadu_epi32(lanes(steps), a + i * a_row));
  }
}

template <bool kTall, bool kWide>
BINADE_INLINE void multiply_steps(const AmxSteps& s) {
  constexpr int64_t kPairBytes = sizeof(BfloatPair);
  const int64_t a_row = s.a_row * kPairBytes, b_step = s.b_step * kPairBytes;
  _tile_loadd(4, s.a[0], a_row);
  _tile_loadd(6, s.b, b_step);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kWide) {
    _tile_loadd(7, s.b + kPairs, b_step);
    _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (kTall) {
    _tile_loadd(5, s.a[1], a_row);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kWide) {
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// Copies fewer than 16 steps of b, padded with zeros.
template <bool kWide>
BINADE_INLINE void copy_steps(AmxSteps& s, int64_t steps, BfloatPair* target) {
  constexpr int kWidth = kWide ? 2 * kPairs : kPairs;
  for (int i = 0; i < kPairs; ++i) {
    for (int v = 0; v < kWidth; v += kPairs) {
      _mm512_storeu_si512(target + i * kWidth + v,
                          _mm512_maskz_loadu_epi32(i < steps ? 0xffff : 0, s.b + i * s.b_step + v));
    }
  }
  s.b = target;
  s.b_step = kWidth;
}

// Multiplies a tile whose rows of a have the same layout in memory as in the registers.
template <bool kTall, bool kWide>
BINADE_INLINE void sum_rows(const Tile<BfloatPair>& t, int rows) {
  alignas(64) BfloatPair a_part[kAmxRows * kPairs], b_part[2 * kPairs * kPairs];
  const int high = kTall ? kTileRows : rows;
  const int64_t second = (rows - high) * t.sum.a_row;
  const BfloatPair* b = t.b;
  for (int64_t segment = 0; segment < t.sum.segments; ++segment) {
    const BfloatPair* a = t.a + t.sum.offsets[segment];
    int64_t left = t.sum.length;
    for (; left >= kPairs; left -= kPairs, a += kPairs, b += kPairs * t.b_step) {
      multiply_steps<kTall, kWide>({{a, a + second}, t.sum.a_row, b, t.b_step});
    }
    if (left) {
      AmxSteps s{{a_part, a_part + kTileRows * kPairs}, kPairs, b, t.b_step};
      for (int i = 0; i <= kTall; ++i) {
        copy_rows(a + i * second, t.sum.a_row, high, left, a_part + i * kTileRows * kPairs);
      }
      copy_steps<kWide>(s, left, b_part);
      before_tile_loads();
      multiply_steps<kTall, kWide>(s);
      b += left * t.b_step;
    }
  }
}

// Multiplies a tile whose steps hold adjacent rows; they are transposed. Segments are contiguous.
template <bool kTall, bool kWide>
BINADE_INLINE void sum_steps(const Tile<BfloatPair>& t, int rows) {
  alignas(64) BfloatPair a_part[kAmxRows * kPairs], b_part[2 * kPairs * kPairs];
  const int high = kTall ? kTileRows : rows, second = rows - high;
  const BfloatPair* b = t.b;
  const BfloatPair* step[kPairs] = {};
  int64_t segment = 0, at = 0, left = t.sum.segments * t.sum.length;
  for (; left > 0; left -= kPairs, b += kPairs * t.b_step) {
    const int64_t steps = left < kPairs ? left : kPairs;
    for (int64_t i = 0; i < steps; ++i) {
      step[i] = t.a + t.sum.offsets[segment] + at * t.sum.a_step;
      if (++at == t.sum.length) {
        at = 0;
        ++segment;
      }
    }
    AmxSteps s{{a_part, a_part + kTileRows * kPairs}, kPairs, b, t.b_step};
    for (int i = 0; i <= kTall; ++i) {
      transpose_steps([&](int k) { return step[k] + i * second; }, steps, high,
                      a_part + i * kTileRows * kPairs);
    }
    if (steps < kPairs) {
      copy_steps<kWide>(s, steps, b_part);
    }
    before_tile_loads();
    multiply_steps<kTall, kWide>(s);
  }
}

// Stores rows [first, first + kRows) of the sums through the tile's epilogue.
template <int kRows, int kVectors>
BINADE_INLINE void store_rows(Tile<BfloatPair> t, const float* sums, int first) {
  Sums<float, kRows, kVectors> some;
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      some.at[i][v] = load(sums + (first + i) * kAmxRows + v * kPairs);
    }
  }
  t.c = static_cast<char*>(t.c) + first * t.c_row * t.epilogue.stored(sizeof(float));
  t.epilogue = t.epilogue.at(first, 0, sizeof(float));
  store_sums(t, some);
}

template <bool kTall, bool kWide, bool kRowsContiguous>
void multiply_tile(const Tile<BfloatPair>& t, int rows) {
  constexpr int64_t kRow = kAmxRows * sizeof(float);
  constexpr int kVectors = kWide ? 2 : 1, kAtOnce = 4;
  alignas(64) float sums[kAmxRows * kAmxRows];
  const int high = kTall ? kTileRows : rows;
  TileRegisters::configure(high);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  before_tile_loads();
  kRowsContiguous ? sum_steps<kTall, kWide>(t, rows) : sum_rows<kTall, kWide>(t, rows);
  _tile_stored(0, sums, kRow);
  if constexpr (kWide) {
    _tile_stored(1, sums + kPairs, kRow);
  }
  if constexpr (kTall) {
    float* low = sums + (rows - kTileRows) * kAmxRows;
    _tile_stored(2, low, kRow);
    if constexpr (kWide) {
      _tile_stored(3, low + kPairs, kRow);
    }
  }
  int i = 0;
  for (; i + kAtOnce <= rows; i += kAtOnce) {
    store_rows<kAtOnce, kVectors>(t, sums, i);
  }
  for (; i < rows; ++i) {
    store_rows<1, kVectors>(t, sums, i);
  }
}

template <int kRows, bool kWide, bool kRowsContiguous>
void amx_tile(const Tile<BfloatPair>& t) {
  multiply_tile<(kRows > kTileRows), kWide, kRowsContiguous>(t, kRows);
}

template <int... kRow>
TileSet<BfloatPair> make_amx_tile_set(Indices<kRow...>) {
  static constexpr TileFunction<BfloatPair> kFunctions[] = {
      amx_tile<kRow + 1, false, false>..., amx_tile<kRow + 1, false, true>...,
      amx_tile<kRow + 1, true, false>..., amx_tile<kRow + 1, true, true>...};
  return {kAmxRows, kPairs, kFunctions};
}

inline TileSet<BfloatPair> amx_tile_set() {
  return make_amx_tile_set(Indices<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                   19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31>{});
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA

#endif
