// Packs matrices of bf16 into steps of pairs (StepPacking, BfloatPair), or into rows of them. Only
// *_avx512_bf16.cpp and *_amx_bf16.cpp files may include it; empty for other instruction sets.
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_vector_internal.h>

#if defined(__AVX512BF16__)

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int kPairs = kLanes<BfloatPair>;

BINADE_INLINE __mmask16 lanes(int64_t count) {
  return first(count < kPairs ? static_cast<int>(count) : kPairs);
}
// The lanes of one vector of bf16.
BINADE_INLINE __mmask32 elements(int64_t count) {
  return count < 2 * kPairs ? (1u << count) - 1u : ~0u;
}

// Rows k and k + 1 of a matrix whose columns are contiguous, element by element.
inline void interleave_rows(const bfloat16* even, const bfloat16* odd, int64_t columns,
                            int64_t width, BfloatPair* target) {
  for (int64_t j = 0; j < width; j += kPairs) {
    const __mmask16 read = lanes(columns > j ? columns - j : 0);
    const Bits low =
        (Bits)_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(read, even + j));
    const Bits high = (Bits)_mm512_maskz_cvtepu16_epi32(
        0xffff, _mm256_maskz_loadu_epi16(odd ? read : __mmask16{0}, odd ? odd + j : even));
    _mm512_mask_storeu_epi32(target + j, lanes(width - j), (__m512i)(low | high << 16));
  }
}

// The same with any stride between columns.
inline void join_rows(const bfloat16* even, const bfloat16* odd, int64_t column_stride,
                      int64_t columns, int64_t width, BfloatPair* target) {
  if (column_stride == 1) {
    return interleave_rows(even, odd, columns, width, target);
  }
  for (int64_t j = 0; j < width; ++j) {
    BfloatPair pair{};
    if (j < columns) {
      pair.even = even[j * column_stride];
      pair.odd = odd ? odd[j * column_stride] : bfloat16{};
    }
    target[j] = pair;
  }
}

// target[i][j] = pair i of column j, whose elements are contiguous.
inline void transpose_pairs(const StepPacking& p, BfloatPair* target) {
  const bfloat16* source = static_cast<const bfloat16*>(p.source);
  const int64_t steps = (p.k + 1) / 2;
  for (int64_t i = 0; i < steps; i += kPairs) {
    const int height = static_cast<int>(steps - i < kPairs ? steps - i : kPairs);
    const __mmask32 read = elements(p.k - 2 * i);
    for (int64_t j = 0; j < p.step_width; j += kPairs) {
      Vector<float> r[kPairs];
      for (int q = 0; q < kPairs; ++q) {
        r[q] = j + q < p.columns ? (Vector<float>)_mm512_maskz_loadu_epi16(
                                       read, source + (j + q) * p.column_stride + 2 * i)
                                 : Vector<float>{};
      }
      transpose<float>(r);
      const __mmask16 written = lanes(p.step_width - j);
      for (int q = 0; q < height; ++q) {
        _mm512_mask_storeu_ps(target + (i + q) * p.step_width + j, written, r[q]);
      }
    }
  }
}

// target[column][step] for at most 16 columns and 16 steps; step(k) gives the start of a step, and
// zeros fill up to 16.
template <class Step>
BINADE_INLINE void transpose_steps(const Step& step, int64_t steps, int columns,
                                   BfloatPair* target) {
  Vector<float> r[kPairs];
  for (int k = 0; k < kPairs; ++k) {
    r[k] =
        k < steps ? (Vector<float>)_mm512_maskz_loadu_ps(lanes(columns), step(k)) : Vector<float>{};
  }
  transpose<float>(r);
  for (int i = 0; i < columns; ++i) {
    _mm512_storeu_ps(target + i * kPairs, r[i]);
  }
}

// Copies columns whose elements are contiguous to rows [column][step].
inline void copy_pair_rows(const StepPacking& p, BfloatPair* target) {
  for (int64_t j = 0; j < p.columns; ++j) {
    const bfloat16* row = static_cast<const bfloat16*>(p.source) + j * p.column_stride;
    BfloatPair* to = target + j * p.step_width;
    for (int64_t k = 0; k < p.k; k += 2 * kPairs) {
      const int64_t left = p.k - k;
      _mm512_mask_storeu_epi32(to + k / 2, lanes((left + 1) / 2),
                               _mm512_maskz_loadu_epi16(elements(left), row + k));
    }
  }
}

inline void pack_pairs(const StepPacking& p, BfloatPair* target) {
  if (p.k_stride == 1 && p.column_stride != 1) {
    return transpose_pairs(p, target);
  }
  const bfloat16* row = static_cast<const bfloat16*>(p.source);
  for (int64_t k = 0; k < p.k; k += 2, row += 2 * p.k_stride, target += p.step_width) {
    join_rows(row, k + 1 < p.k ? row + p.k_stride : nullptr, p.column_stride, p.columns,
              p.step_width, target);
  }
}

// target[column][step], step_width steps apart.
inline void pack_pair_rows(const StepPacking& p, BfloatPair* target) {
  if (p.k_stride == 1) {
    return copy_pair_rows(p, target);
  }
  const bfloat16* source = static_cast<const bfloat16*>(p.source);
  alignas(64) BfloatPair steps[kPairs * kPairs], rows[kPairs * kPairs];
  for (int64_t j = 0; j < p.columns; j += kPairs) {
    const int columns = static_cast<int>(p.columns - j < kPairs ? p.columns - j : kPairs);
    for (int64_t k = 0; k < p.k; k += 2 * kPairs) {
      const int64_t left = p.k - k < 2 * kPairs ? p.k - k : 2 * kPairs;
      const bfloat16* part = source + k * p.k_stride + j * p.column_stride;
      for (int64_t i = 0; i < left; i += 2, part += 2 * p.k_stride) {
        join_rows(part, i + 1 < left ? part + p.k_stride : nullptr, p.column_stride, columns,
                  kPairs, steps + i / 2 * kPairs);
      }
      transpose_steps([&](int i) { return steps + i * kPairs; }, (left + 1) / 2, columns, rows);
      for (int i = 0; i < columns; ++i) {
        _mm512_mask_storeu_epi32(target + (j + i) * p.step_width + k / 2, lanes((left + 1) / 2),
                                 _mm512_load_si512(rows + i * kPairs));
      }
    }
  }
}

// The Operands of products in pairs (kernels/gemm/gemm_block_internal.h). b is always packed: a
// pair holds elements of two rows.
struct PairOperands {
  using Element = BfloatPair;
  static constexpr int64_t kPerStep = 2;

  static bool a_can_stay(const MatrixProduct& p) {
    return p.a_strides[1] == 1 && p.a_strides[0] % 2 == 0 && p.k % 2 == 0;
  }
  static bool b_can_stay(const MatrixProduct&) { return false; }
  static void pack(const StepPacking& p, BfloatPair* target) { pack_pairs(p, target); }
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA

#endif
