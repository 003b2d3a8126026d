// Between the chunks of a PNG (decode_png.cpp) and its pixels (decode_png_pixels.cpp). Not part of
// the public interface.
#pragma once
#include <binade/data/decode_internal.h>

#include <cstddef>
#include <span>
#include <vector>

namespace binade::data::internal {

constexpr int kPngColor = 2, kPngPalette = 3;  // color_type: RGB (a bit of it); palette

struct PngHeader {
  int64_t height, width;
  int bit_depth, color_type;
  bool interlaced;
};

struct PngChunks {
  std::span<const uint8_t> palette, transparency;  // PLTE, tRNS
  std::vector<std::span<const uint8_t>> data;      // IDAT
};

// Samples of a pixel; 0 if there is no such type.
size_t png_samples(int color_type);

// REQUIRES: a header that was checked.
Image read_png_pixels(const DecodeRequest& request, const PngHeader& header,
                      const PngChunks& chunks);

}  // namespace binade::data::internal
