// y = x * scale + shift of interleaved bytes, cast and laid out in one pass: the loop behind
// data::Normalizer. The product and the sum are rounded separately on every instruction set (the
// build compiles the source without contraction), so all give the same.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

#include <cstddef>

namespace binade::kernels {

// The values of scale and shift repeat, so that a vector of them can start at any of its lanes.
inline constexpr int kNormalizePixels = 16;

struct NormalizeBytes {
  const uint8_t* x;  // [pixels, channels]
  std::byte* y;      // f32, f16 or bf16
  DType dtype;
  int64_t pixels;
  int channels;        // 1 to 4
  const float* scale;  // [kNormalizePixels, channels], the same for every pixel
  const float* shift;
  int64_t plane;  // 0: y is [pixels, channels]; else elements from a channel of y to the next
};
BINADE_ISA_KERNEL(normalize_bytes, const NormalizeBytes& a)

}  // namespace binade::kernels
