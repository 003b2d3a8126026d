// Inner loops of the changes of 8-bit pictures in data/augment. The build compiles them without
// contraction, so that every instruction set gives the same bytes.
#pragma once
#include <binade/kernels/base/isa.h>

#include <cstddef>
#include <cstdint>

namespace binade::kernels {

inline constexpr int kWarpMaxChannels = 4;

// y[i, j] = x at (u, v), where -1 and 1 are the edges of x: (u, v, w) = matrix [3, 3] * (j -
// center_x, i - center_y, 1), and for a projective matrix (u / w - 1, v / w - 1) instead. Pixels
// outside are 0. Single precision in the order of torchvision's grids.
struct WarpBytes {
  const uint8_t* x;  // [height, width, channels], dense
  int height, width, channels;
  uint8_t* y;  // [out_height, out_width, channels], dense
  int out_height, out_width;
  float center_x, center_y;
  float matrix[9];
  bool projective;    // false: w is 1
  bool nearest;       // ties to even; else bilinear
  const float* fill;  // [channels] of pixels outside, blended by torchvision's rule; null: zeros
};
BINADE_ISA_KERNEL(warp_bytes, const WarpBytes& a)

// y = saturate(x * factor + grey(x) * (1 - factor)), truncated; grey = floor(0.2989 red + 0.587
// green + 0.114 blue).
struct BlendGreyBytes {
  const uint8_t* x;  // [pixels, 3]
  uint8_t* y;
  int64_t pixels;
  float factor;
};
BINADE_ISA_KERNEL(blend_grey_bytes, const BlendGreyBytes& a)

// grey[i] = floor(0.2989 red + 0.587 green + 0.114 blue) of x [pixels, 3].
struct GreyBytes {
  const uint8_t* x;
  uint8_t* grey;
  int64_t pixels;
};
BINADE_ISA_KERNEL(grey_bytes, const GreyBytes& a)

// Adds `shift` to the hue (0 to 1 is the circle) of x [pixels, 3].
struct ShiftHueBytes {
  const uint8_t* x;
  uint8_t* y;
  int64_t pixels;
  float shift;
};
BINADE_ISA_KERNEL(shift_hue_bytes, const ShiftHueBytes& a)

// One row of the blend with a 3 x 3 average whose middle has weight 5: y = x + share (average - x),
// truncated; the average is rounded. x points to the first of `bytes` values that have neighbours.
struct SharpenRow {
  const uint8_t *above, *x, *below;
  ptrdiff_t bytes;
  int channels;
  float share;
  uint8_t* y;
};
BINADE_ISA_KERNEL(sharpen_row, const SharpenRow& a)

// y[i] = the sum over t of weight[t] * row[t][i]: rounded to bytes if `bytes_out` is given, else
// float.
struct WeighRows {
  const uint8_t* const* bytes_in;  // one of the two
  const float* const* floats_in;
  const float* weight;  // [taps]
  int taps;
  int64_t count;
  float* floats_out;  // one of the two
  uint8_t* bytes_out;
};
BINADE_ISA_KERNEL(weigh_rows, const WeighRows& a)

// y[i] += weight * x[i].
struct AddBytes {
  const uint8_t* x;
  float weight;
  float* y;
  int64_t count;
};
BINADE_ISA_KERNEL(add_bytes, const AddBytes& a)

// y[i] = table[i mod channels][x[i]]; table is [channels, 256] or, with one_table, [256].
struct LookUpBytes {
  const uint8_t* x;
  uint8_t* y;
  int64_t pixels;
  int channels;
  const uint8_t* table;
  bool one_table;
};
BINADE_ISA_KERNEL(look_up_bytes, const LookUpBytes& a)

}  // namespace binade::kernels
