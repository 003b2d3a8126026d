// Shared by the decoders of the formats. Not part of the public interface.
#pragma once
#include <binade/data/decode.h>
#include <binade/kernels/base/error.h>

namespace binade::data::internal {

struct DecodeRequest {
  std::span<const uint8_t> bytes;
  std::string_view path;
  const DecodeOptions& options;

  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(path, ": ", parts...);
  }
  // The channels to produce from a file that has `in_file` colour channels (alpha not counted).
  int channels(int in_file) const {
    return options.channels == 0 ? (in_file == 1 ? 1 : 3) : options.channels;
  }
};

// Throws if a size in a header is < 1 or exceeds the limits.
void check_size(const DecodeRequest& request, int64_t height, int64_t width);

Image decode_jpeg(const DecodeRequest& request);
Image decode_png(const DecodeRequest& request);
Image decode_bmp(const DecodeRequest& request);
Image decode_pnm(const DecodeRequest& request);
Image decode_tga(const DecodeRequest& request);
// True if the bytes start like a TGA file, which has no signature.
bool looks_like_tga(std::span<const uint8_t> bytes);

// Decodes by stb_image; structure and size (height, width) must have been checked before.
Image decode_with_stb(const DecodeRequest& request, int64_t height, int64_t width, int channels);

// Converts grey or RGB to 1, 3 or 4 channels; luma as in JPEG, alpha 255.
Image convert_channels(Image image, int channels);

// Orientation 1..8 from a TIFF block (the payload of EXIF), or 1 if it is missing or invalid.
int tiff_orientation(std::span<const uint8_t> tiff);
// Rotates and mirrors the image so that its orientation becomes 1.
Image apply_orientation(Image image, int orientation);

// Big- and little-endian numbers; the caller has checked the length.
inline uint32_t read_u16_be(const uint8_t* p) { return uint32_t(p[0]) << 8 | p[1]; }
inline uint32_t read_u32_be(const uint8_t* p) { return read_u16_be(p) << 16 | read_u16_be(p + 2); }
inline uint32_t read_u16_le(const uint8_t* p) { return uint32_t(p[1]) << 8 | p[0]; }
inline uint32_t read_u32_le(const uint8_t* p) { return read_u16_le(p + 2) << 16 | read_u16_le(p); }

}  // namespace binade::data::internal
