// Inner loops of Resampler. A weight of 23 bits is high * 2^11 + low: products of bytes with both
// parts fit the instructions that multiply 16-bit pairs, and the sum of both is exact.
#pragma once
#include <binade/kernels/base/isa.h>

#include <cstddef>
#include <cstdint>

namespace binade::kernels {

inline constexpr int kResampleBits = 22;     // 255 * 2^22 fits in 31 bits
inline constexpr int kResampleLowBits = 11;  // of the low part
inline constexpr int kResampleGroup = 4;     // taps
// Bytes that may be read after the last pixel of x, or written after the last of a row of y.
inline constexpr int kResampleSlack = 16;

// y[r, j] = the sum over the taps t of output j of weight * x[r, first[j] + t], rounded to 8 bits.
// Weights of group g are weight[8 g ...]: 4 high parts, then 4 low parts.
struct ResampleColumns {
  const uint8_t* x;
  ptrdiff_t x_stride;
  int64_t rows;
  int channels;
  const int32_t* first;
  const int32_t* groups;  // [count + 1]
  const int16_t* weight;
  int64_t count;
  uint8_t* y;
  ptrdiff_t y_stride;
};
BINADE_ISA_KERNEL(resample_columns, const ResampleColumns& a)

// y[i] = the sum over the taps t of weight * row[t][i], rounded to 8 bits; weights as above.
struct ResampleRow {
  const uint8_t* const* row;  // [4 groups]; taps without weight name any row
  const int16_t* weight;
  int64_t groups, bytes;
  uint8_t* y;
};
BINADE_ISA_KERNEL(resample_row, const ResampleRow& a)

// Mirrors the pixels of each row. REQUIRES: channels 1 to 4.
struct FlipRows {
  uint8_t* x;  // [rows, width, channels], dense
  int64_t rows, width;
  int channels;
};
BINADE_ISA_KERNEL(flip_rows, const FlipRows& a)

}  // namespace binade::kernels
