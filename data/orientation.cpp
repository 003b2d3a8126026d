// EXIF orientation: reads the tag from a TIFF block, and rotates an image accordingly.
#include <binade/data/decode_internal.h>

#include <algorithm>

namespace binade::data::internal {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;

// Reads numbers in the byte order of the TIFF block.
struct TiffReader {
  std::span<const uint8_t> bytes;
  bool little;

  bool holds(size_t at, size_t count) const {
    return at <= bytes.size() && count <= bytes.size() - at;
  }
  uint32_t u16(size_t at) const {
    return little ? read_u16_le(&bytes[at]) : read_u16_be(&bytes[at]);
  }
  uint32_t u32(size_t at) const {
    return little ? read_u32_le(&bytes[at]) : read_u32_be(&bytes[at]);
  }
};

}  // namespace

int tiff_orientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) {
    return 1;
  }
  const TiffReader reader{tiff, tiff[0] == 'I'};
  const size_t directory = reader.u32(4);
  if (reader.u16(2) != 42 || !reader.holds(directory, 2)) {
    return 1;
  }
  const size_t entries = reader.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (!reader.holds(at, 12)) {
      return 1;
    }
    if (reader.u16(at) == kOrientationTag) {
      const uint32_t value = reader.u16(at + 8);
      const bool valid = reader.u16(at + 2) == kShortType && reader.u32(at + 4) == 1;
      return valid && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

Image apply_orientation(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) {
    return image;
  }
  // out(y, x) = in(y, x), or for orientations 5..8 in(x, y), with rows and columns of `in`
  // mirrored.
  const bool transposed = orientation >= 5;
  const bool mirror_row =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool mirror_column =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int height = transposed ? image.width : image.height;
  const int width = transposed ? image.height : image.width;
  Image out = make_image(height, width, image.channels);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x) {
      const int from_y = transposed ? x : y, from_x = transposed ? y : x;
      const int row = mirror_row ? image.height - 1 - from_y : from_y;
      const int column = mirror_column ? image.width - 1 - from_x : from_x;
      const uint8_t* from = image.row(row) + static_cast<size_t>(column) * image.channels;
      to = std::copy_n(from, image.channels, to);
    }
  }
  return out;
}

}  // namespace binade::data::internal
