// Between the chunks of a PNG (decode_png.cpp) and its pixels (decode_png_pixels.cpp). Not part of
// the public interface.
#pragma once
#include <binade/data/decode_internal.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

// The predictor of Paeth (PNG, section 9.4): which of the three neighbours is closest to left + up
// - corner.
inline int paeth(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) {
    return left;
  }
  return to_up <= to_corner ? up : corner;
}

// REQUIRES: a header that was checked.
Image read_png_pixels(const DecodeRequest& request, const PngHeader& header,
                      const PngChunks& chunks);

}  // namespace binade::data::internal
