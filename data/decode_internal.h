// Shared by the decoders. Not part of the public interface.
#pragma once
#include <binade/data/decode.h>
#include <binade/data/window/image_request.h>
#include <binade/kernels/base/error.h>

#include <array>
#include <chrono>
#include <cstring>

namespace binade::data::internal {

struct DecodeRequest {
  std::span<const uint8_t> bytes;
  std::string_view path;
  const DecodeOptions& options;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(path, ": ", parts...);
  }
  // Throws unless the file has this many bytes.
  void need(const char* format, uint64_t bytes_needed) const {
    if (bytes.size() < bytes_needed) {
      reject("truncated ", format, ": the header needs ", bytes_needed, " bytes, the file has ",
             bytes.size());
    }
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // Throws if decoding has exceeded its time limit. Decoders call it for every row or scan.
  void check_time() const {
    if (seconds() > options.limits.max_seconds) [[unlikely]] {
      reject("decoding takes longer than ", options.limits.max_seconds,
             " s, the limit (DecodeLimits::max_seconds)");
    }
  }
  // The channels to produce from a file that has `in_file` colour channels (alpha not counted).
  int channels(int in_file) const {
    return options.channels == 0 ? (in_file == 1 ? 1 : 3) : options.channels;
  }
};

// Throws if the options are invalid, or if the file is empty or too large.
void check_request(const DecodeRequest& request);
// The EXIF orientation of a JPEG, PNG or WebP, else 1.
int orientation_of(std::span<const uint8_t> bytes);

// True for a file of which decode_part() can decode a part: a JPEG, if libjpeg-turbo is built in.
bool can_decode_part(std::span<const uint8_t> bytes);
// Decodes the part of the picture that `wanted` needs, and applies its changes.
Image decode_part(std::span<const uint8_t> bytes, std::string_view path,
                  const DecodeOptions& options, ImageRequest& wanted);

// Throws if a size in a header is < 1 or exceeds the limits of sides, pixels or compression.
void check_size(const DecodeRequest& request, int64_t height, int64_t width);

Image decode_jpeg(const DecodeRequest& request);
Image decode_png(const DecodeRequest& request);
Image decode_bmp(const DecodeRequest& request);
Image decode_pnm(const DecodeRequest& request);
Image decode_tga(const DecodeRequest& request);
Image decode_gif(const DecodeRequest& request);
Image decode_webp(const DecodeRequest& request);
// True if the bytes start with P, a digit from 1 to 7, and white space or a comment.
bool looks_like_pnm(std::span<const uint8_t> bytes);
bool looks_like_webp(std::span<const uint8_t> bytes);
// Returns the TIFF part of the EXIF chunk of a WebP, or nothing.
std::span<const uint8_t> webp_exif(std::span<const uint8_t> bytes);
// True if the bytes start like a TGA file, which has no signature.
bool looks_like_tga(std::span<const uint8_t> bytes);

// Decodes a JPEG with stb_image, in builds without libjpeg-turbo. REQUIRES: the structure and size
// (height, width) were checked.
Image decode_with_stb(const DecodeRequest& request, int64_t height, int64_t width, int channels);

// The grey of a colour, as in JPEG: 0.299 red + 0.587 green + 0.114 blue, rounded.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

using Pixel = std::array<uint8_t, 4>;  // red, green, blue, alpha

inline void store_pixel(uint8_t* to, int channels, const Pixel& pixel) {
  if (channels == 1) {
    *to = luma(pixel[0], pixel[1], pixel[2]);
  } else {
    std::memcpy(to, pixel.data(), static_cast<size_t>(channels));
  }
}

// Converts grey or RGB to 1, 3 or 4 channels; grey is luma as in JPEG, alpha is 255.
Image convert_channels(Image image, int channels);

// The orientation, 1 to 8, in a TIFF block (the payload of EXIF); 1 if it is missing or invalid.
int tiff_orientation(std::span<const uint8_t> tiff);
// Rotates and mirrors the image so that its orientation becomes 1.
Image apply_orientation(Image image, int orientation);

// Big- and little-endian reads; the caller has checked the length.
inline uint32_t read_u16_be(const uint8_t* p) { return uint32_t(p[0]) << 8 | p[1]; }
inline uint32_t read_u32_be(const uint8_t* p) { return read_u16_be(p) << 16 | read_u16_be(p + 2); }
inline uint32_t read_u16_le(const uint8_t* p) { return uint32_t(p[1]) << 8 | p[0]; }
inline uint32_t read_u32_le(const uint8_t* p) { return read_u16_le(p + 2) << 16 | read_u16_le(p); }

}  // namespace binade::data::internal
