// Shared by decode_png.cpp (the chunks) and decode_png_pixels.cpp (the pixels). Not part of the
// public interface.
#pragma once
#include <binade/data/decode_internal.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace binade::data::internal {

constexpr int kPngColor = 2, kPngPalette = 3;  // values of color_type; the first is also a bit

struct PngHeader {
  int64_t height, width;
  int bit_depth, color_type;
  bool interlaced;
};

struct PngChunks {
  std::span<const uint8_t> palette, transparency;  // PLTE, tRNS
  std::vector<std::span<const uint8_t>> data;      // IDAT
};

// The number of samples per pixel; 0 for an unknown type.
size_t png_samples(int color_type);

// The Paeth predictor (PNG, section 9.4): the one of the three neighbours that is closest to left +
// up - corner.
inline int paeth(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) {
    return left;
  }
  return to_up <= to_corner ? up : corner;
}

// REQUIRES: the header was checked.
Image read_png_pixels(const DecodeRequest& request, const PngHeader& header,
                      const PngChunks& chunks);

}  // namespace binade::data::internal
