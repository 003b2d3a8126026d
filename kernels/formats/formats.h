// Kernels of the format lab: they give tensors the values that they would have in another number
// format, without storing them in it (core/precision/number_formats.h). Random bits of element i
// are number offset + i (plus `advance`, i64 [1] in device memory) of the Philox sequence of
// `seed`, so they are the same on every device and at any thread count.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/formats/format_rounding.h>

namespace binade::kernels {

// y = s round(x / s), with s = scale (f32 [1]) or 1. y is stored in its own dtype, which rounds
// once more where it does not hold the value.
struct RoundToFormat {
  const View& x;  // floating, contiguous
  const View& y;  // like x; may be the same memory
  FormatGrid grid;
  Rounding rounding;
  uint64_t seed = 0, offset = 0;
  const View& advance = kNoView;
  const View& scale = kNoView;
};
BINADE_KERNEL(round_to_format, RoundToFormat, x)

// The rule that gives a block its scale from its largest magnitude.
//   power:   2^(floor(log2 amax) - exponent of the format's max), as OCP MX 1.0, section 6.3
//   nearest: amax / max of the elements, rounded to the scale's own format (NVFP4)
enum class BlockScale : uint8_t { power, nearest };

// The same with one scale per block of `block` adjacent elements along one dimension. x is seen as
// [outer, length, inner]; blocks lie along `length`, the last one may be shorter. A block with an
// infinity or NaN becomes NaN: its scale has no value.
struct RoundBlocks {
  const View& x;  // floating, contiguous
  const View& y;  // like x; may be the same memory
  int64_t length, inner, block;
  FormatGrid grid;  // of the elements
  FormatGrid scales;
  BlockScale rule;
  Rounding rounding;
  uint64_t seed = 0, offset = 0;
  const View& advance = kNoView;
  const View& scale = kNoView;  // f32 [1], the second level: block scales are multiples of it
};
BINADE_KERNEL(round_blocks, RoundBlocks, x)

// The order of a sum.
//   sequential: one accumulator
//   chunks:     chunks of `chunk` products, then the sum of their sums (Wang et al., "Training Deep
//               Neural Networks with 8-bit Floating Point Numbers", NeurIPS 2018)
//   pairwise:   the sum of two halves, recursively
//   kahan:      sequential, with a second accumulator for the rounding errors
enum class SumOrder : uint8_t { sequential, chunks, pairwise, kahan };

// y = a b, where every sum is rounded to `grid`. A product is exact before it is added; each sum is
// computed in double, then rounded.
struct AccumulateMatmul {
  const View& a;  // [m, k], floating, contiguous
  const View& b;  // [k, n], like a
  const View& y;  // [m, n], like a
  FormatGrid grid;
  Rounding rounding;
  SumOrder order;
  int64_t chunk = 1;
  uint64_t seed = 0, offset = 0;  // each output element uses 8 k numbers at most
  const View& advance = kNoView;
};
BINADE_KERNEL(accumulate_matmul, AccumulateMatmul, a)

}  // namespace binade::kernels
