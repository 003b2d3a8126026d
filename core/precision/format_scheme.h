// How a tensor is brought into a number format: the format, the rounding, and the scales. Schemes
// of the literature by name:
//
//   e4m3fn, e5m2, bf16, ...   each element by itself (core/precision/number_formats.h)
//   mxfp8, mxfp8-e5m2, mxfp6, mxfp6-e3m2, mxfp4
//                             blocks of 32 with an E8M0 scale (OCP Microscaling Formats 1.0)
//   nvfp4                     E2M1 in blocks of 16 with an E4M3 scale, and an f32 scale of the
//                             tensor (NVIDIA, "Pretraining LLMs with NVFP4", 2025, appendix A)
#pragma once
#include <binade/core/precision/number_formats.h>
#include <binade/kernels/formats/formats.h>

#include <cstdint>
#include <string>

namespace binade {

// The scale s of y = s round(x / s).
//   none:    1
//   tensor:  largest |x| / largest value of the format (current scaling)
//   delayed: the same from the largest |x| of the last `history` uses of this tensor, before this
//            one (Micikevicius et al., "FP8 Formats for Deep Learning", 2022); 1 at the first use
//   blocks:  one per block
enum class FormatScaling : uint8_t { none, tensor, delayed, blocks };

struct FormatScheme {
  NumberFormat format;
  Rounding rounding = Rounding::nearest_even;
  FormatScaling scaling = FormatScaling::none;
  int64_t history = 16;  // of delayed scales
  // A block is `block` adjacent elements along `axis`; block_scale is the format of its scale. With
  // BlockScale::nearest the tensor has a scale, too. Elements that exceed the format saturate.
  int64_t block = 32;
  int axis = -1;
  kernels::BlockScale block_rule = kernels::BlockScale::power;
  NumberFormat block_scale = {};

  bool operator==(const FormatScheme&) const = default;
};

// A scheme by name, as above, and words after slashes: "mxfp4/stochastic", "e4m3fn/tensor",
// "e5m2/delayed=16/toward-zero". A number format, as number_format() takes it, has no scale without
// such a word. With a scale it saturates, as the conversions of FP8 hardware do, unless the text
// has an overflow=... of its own: a delayed scale may be too small. Throws an error that lists what
// there is.
FormatScheme format_scheme(const std::string& text);
// Gives the scheme this scaling, and its format saturation. Not for schemes of blocks.
void set_scaling(FormatScheme& scheme, FormatScaling scaling);
// The text that format_scheme() reads back; for blocks of another size or format, words about them.
std::string to_string(const FormatScheme& scheme);
// none, tensor or delayed: the scales that a flag can ask for.
FormatScaling parse_format_scaling(const std::string& name);

// How sums are rounded in accumulated_matmul() (core/ops/format.h).
struct Accumulation {
  NumberFormat format;  // of the accumulators
  kernels::SumOrder order = kernels::SumOrder::sequential;
  int64_t chunk = 64;  // of SumOrder::chunks
  Rounding rounding = Rounding::nearest_even;
};

}  // namespace binade
