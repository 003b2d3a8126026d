// WebP by libwebp; of an animation, the first frame on a transparent black canvas. The header gives
// the size before anything is allocated.
#include <binade/data/decode_internal.h>

#include <algorithm>

#ifdef BINADE_WITH_WEBP
#include <webp/decode.h>
#endif

namespace binade::data {

#ifdef BINADE_WITH_WEBP

bool has_libwebp() { return true; }

namespace internal {
namespace {

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return "truncated WebP";
    case VP8_STATUS_OUT_OF_MEMORY: return "WebP: out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "WebP with a feature that libwebp does not read";
    default: return "corrupt WebP";
  }
}

// The part of the file that RIFF's length covers. Bytes after it do not belong to the picture.
std::span<const uint8_t> whole_file(const DecodeRequest& request) {
  constexpr uint64_t kHeader = 12, kBeforeLength = 8;
  request.need("WebP", kHeader);
  const uint64_t length = kBeforeLength + read_u32_le(&request.bytes[4]);
  if (length < kHeader) {
    request.reject("corrupt WebP: the header says ", length, " bytes");
  }
  request.need("WebP", length);
  return request.bytes.first(static_cast<size_t>(length));
}

WebPBitstreamFeatures features_of(const DecodeRequest& request, std::span<const uint8_t> bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) {
    request.reject(reason_of(status), ": its header cannot be read");
  }
  check_size(request, features.height, features.width);
  return features;
}

Image decode_single(const DecodeRequest& request, std::span<const uint8_t> bytes,
                    const WebPBitstreamFeatures& features, bool four) {
  Image image = make_image(features.height, features.width, four ? 4 : 3);
  WebPDecoderConfig config;
  WebPInitDecoderConfig(&config);
  config.output.colorspace = four ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = image.width * image.channels;
  config.output.u.RGBA.size = image.pixels.size();
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) {
    request.reject(reason_of(status), ": its pixels cannot be decoded");
  }
  request.check_time();
  return image;
}

uint32_t read_u24_le(const uint8_t* p) { return read_u16_le(p) | uint32_t(p[2]) << 16; }

// The payload of the first chunk with this name after the header, or nothing.
std::span<const uint8_t> find_chunk(std::span<const uint8_t> bytes, const char* name) {
  constexpr size_t kHeader = 12, kChunkHeader = 8;
  for (size_t at = kHeader; at + kChunkHeader <= bytes.size();) {
    const size_t length = read_u32_le(&bytes[at + 4]);
    if (length > bytes.size() - at - kChunkHeader) {
      break;
    }
    if (std::memcmp(&bytes[at], name, 4) == 0) {
      return bytes.subspan(at + kChunkHeader, length);
    }
    at += kChunkHeader + length + length % 2;
  }
  return {};
}

Image decode_first_frame(const DecodeRequest& request, std::span<const uint8_t> bytes,
                         const WebPBitstreamFeatures& canvas, bool four) {
  constexpr size_t kFrameHeader = 16;
  const std::span<const uint8_t> frame = find_chunk(bytes, "ANMF");
  if (frame.size() <= kFrameHeader) {
    request.reject("truncated WebP: no frame of its animation");
  }
  const int64_t left = 2 * int64_t{read_u24_le(&frame[0])},
                top = 2 * int64_t{read_u24_le(&frame[3])};
  const std::span<const uint8_t> pixels = frame.subspan(kFrameHeader);
  const WebPBitstreamFeatures features = features_of(request, pixels);
  if (left + features.width > canvas.width || top + features.height > canvas.height) {
    request.reject("corrupt WebP: its first frame leaves the canvas");
  }
  const Image part = decode_single(request, pixels, features, four);
  Image image = make_image(canvas.height, canvas.width, part.channels);
  for (int y = 0; y < part.height; ++y) {
    std::copy_n(part.row(y), ptrdiff_t{part.width} * part.channels,
                image.row(static_cast<int>(top) + y) + left * part.channels);
  }
  return image;
}

}  // namespace

Image decode_webp(const DecodeRequest& request) {
  const std::span<const uint8_t> bytes = whole_file(request);
  const WebPBitstreamFeatures features = features_of(request, bytes);
  const int channels = request.channels(3);
  Image image = features.has_animation != 0
                    ? decode_first_frame(request, bytes, features, channels == 4)
                    : decode_single(request, bytes, features, channels == 4);
  return convert_channels(std::move(image), channels);
}

std::span<const uint8_t> webp_exif(std::span<const uint8_t> bytes) {
  const std::span<const uint8_t> payload = find_chunk(bytes, "EXIF");
  const bool has_name = payload.size() >= 6 && std::memcmp(payload.data(), "Exif\0\0", 6) == 0;
  return has_name ? payload.subspan(6) : payload;
}

}  // namespace internal

#else

bool has_libwebp() { return false; }

namespace internal {

Image decode_webp(const DecodeRequest& request) {
  request.reject("a WebP, and this build has no libwebp; install libwebp-dev and build again");
}

std::span<const uint8_t> webp_exif(std::span<const uint8_t>) { return {}; }

}  // namespace internal

#endif

}  // namespace binade::data
