// Encodes pixels as PNG (lossless, zlib) or JPEG (libjpeg) in memory. data/pictures/pictures.h
// writes them to files.
#pragma once
#include <binade/data/sample.h>

namespace binade::data {

// A complete PNG file of an image of 1 to 4 channels (2: grey with alpha, 4: RGBA); `level` is
// zlib's, 0 to 9.
std::vector<uint8_t> encode_png(const Image& image, int level = 6);

// A complete baseline JPEG file of an image of 1 or 3 channels; quality 1 to 100. Throws Error if
// has_libjpeg() is false.
std::vector<uint8_t> encode_jpeg(const Image& image, int quality = 90);

}  // namespace binade::data
