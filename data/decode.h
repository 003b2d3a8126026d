// Decodes image files to pixels. The content decides the format, never the name. JPEG uses
// libjpeg-turbo (a warning is an error: a truncated file never gives a picture). PNG, BMP, PNM (P1
// to P7), TGA and GIF (the first frame) are decoded here, with zlib for PNG: chunk CRCs, the
// checksum of the pixels and exact ends are checked. WebP is decoded by libwebp. Sizes in the
// header are checked against the limits before memory is allocated.
#pragma once
#include <binade/data/sample.h>

#include <span>
#include <string>
#include <string_view>

namespace binade::data {

struct DecodeLimits {
  int64_t max_file_bytes = int64_t(256) << 20;
  int64_t max_pixels = 89'478'485;
  int max_side = 32'768;
  int max_scans = 100;  // for a progressive JPEG
  // A picture of more than ratio_from bytes (pixels x channels) may be at most max_ratio times as
  // large as its file. Photographs reach 50; an empty page of about 100 megapixels exceeds 300.
  double max_ratio = 300;
  int64_t ratio_from = int64_t(64) << 20;
  double max_seconds = 10;  // time limit for one file, checked after every row or scan
};

struct DecodeOptions {
  int channels = 0;  // 1 grey, 3 RGB, 4 RGBA; 0: as in the file (1 or 3, without alpha)
  // If > 0, a JPEG may be decoded at 1/2, 1/4 or 1/8 as long as both sides stay >= this.
  int target_side = 0;
  bool apply_orientation = true;  // rotate by EXIF; values outside 1..8 count as 1
  DecodeLimits limits = {};
};

// Decodes a whole file held in memory. `path` is for messages only. Throws Error.
Image decode_image(std::span<const uint8_t> bytes, std::string_view path,
                   const DecodeOptions& options = {});

// Reads a regular file of at most limits.max_file_bytes and decodes it. Never blocks on a FIFO.
Image read_image(const std::string& path, const DecodeOptions& options = {});

// The bytes of a regular file. Throws Error if it is missing, not regular, or too large.
std::vector<uint8_t> read_file(const std::string& path, int64_t max_bytes);

// The format by content: "JPEG", "PNG", "BMP", "PNM", "GIF", "WebP" or "TGA"; "" if unknown.
std::string_view image_format(std::span<const uint8_t> bytes);
// The EXIF orientation, 1 to 8; 1 if the file has none.
int image_orientation(std::span<const uint8_t> bytes);

// True if libwebp is built in; otherwise a WebP is an error.
bool has_libwebp();

// True if libjpeg-turbo is built in; otherwise stb_image decodes JPEG, and encoding it is an error.
bool has_libjpeg();

}  // namespace binade::data
