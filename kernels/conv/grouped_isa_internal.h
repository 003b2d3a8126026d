// The loops of grouped convolution (grouped_internal.h): a run of output pixels with the same taps,
// and the sums of the weight's gradient. Strides count elements.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

namespace binade::kernels {

// The distribution of the channels of one direction over vectors.
struct GroupedLanes {
  int64_t groups = 1, reduced = 1, produced = 1;  // channels of a group, in and out
  int64_t width = 1;                              // their greatest common divisor
  int64_t slots = 1;                              // accumulators: width, rounded up to a power of 2
  int64_t lanes = 1;                              // of a vector
  int64_t step = 1;                               // used lanes: whole blocks of width

  [[gnu::always_inline]] int64_t phases() const { return reduced / width; }
  [[gnu::always_inline]] bool is_expanded() const { return reduced != produced; }
  [[gnu::always_inline]] int64_t channels() const { return groups * produced; }
  [[gnu::always_inline]] int64_t vectors() const { return (channels() + step - 1) / step; }
  [[gnu::always_inline]] int64_t pixel() const {
    return phases() * channels();
  }  // elements of an expanded pixel
};

// One tap of a run of output pixels.
struct GroupedTap {
  const void* x;  // the source of the first output pixel, channel 0
  const void* w;  // [slots][lanes] of vector 0
};

// A run of output pixels of one row that have the same taps.
struct GroupedPixels {
  DType compute = DType::f32;
  GroupedLanes lanes = {};
  const int32_t* rotations = nullptr;  // with sign -1
  const GroupedTap* taps = nullptr;
  int64_t tap_count = 0;
  int64_t x_step = 0;  // from the source of a pixel to that of the next one
  int64_t w_step = 0;  // from vector to vector
  int64_t pixels = 0;
  void* y = nullptr;  // [pixels][channels] of the compute dtype
  int64_t y_step = 0;
  TileEpilogue epilogue = {};  // scale, bias, relu, and a residual in the layout of y
  // Columns and rows of the source that the next row reads beyond the last tap of this one, and the
  // strides to them and to the next row of y: they are prefetched if new_rows is not 0.
  int64_t new_columns = 0, new_rows = 0, x_column = 0, x_row = 0, y_row = 0;
};

// expanded[i][e] = pixels[i][channels[e]]
struct GroupedExpansion {
  DType compute = DType::f32;
  const void* pixels = nullptr;
  int64_t count = 0, pixel_step = 0;
  const int32_t* channels = nullptr;
  int64_t elements = 0;  // of an expanded pixel
  void* expanded = nullptr;
};

// sums[tap][k][lane] (+)= sum over pixels of x[pixel + offsets[tap]][lane] * dy[pixel][rotated
// lane] for one vector of channels and all pixels of a block.
struct GroupedWeightSums {
  DType compute = DType::f32;
  GroupedLanes lanes = {};
  const int32_t* rotations = nullptr;  // with sign 1
  const int64_t* offsets = nullptr;
  int64_t tap_count = 0;
  int64_t images = 0, rows = 0, columns = 0;  // of dy
  const void* x = nullptr;                    // readable for a whole vector everywhere
  int64_t x_image = 0, x_row = 0, x_column = 0;
  const void* dy = nullptr;
  int64_t dy_image = 0, dy_row = 0, dy_column = 0;
  int64_t count = 0;     // channels of dy that may be read; up to lanes
  void* sums = nullptr;  // [taps][slots][lanes]
  bool accumulate = false;
};

BINADE_ISA_KERNEL(grouped_pixels, const GroupedPixels&)
BINADE_ISA_KERNEL(grouped_expand, const GroupedExpansion&)
BINADE_ISA_KERNEL(grouped_weight_sums, const GroupedWeightSums&)

}  // namespace binade::kernels
