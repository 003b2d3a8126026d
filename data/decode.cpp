// Reads files, recognises the format by content, checks sizes against the limits, and applies the
// orientation.
#include <binade/core/io/file_system.h>
#include <binade/core/observe/timeline.h>
#include <binade/data/decode_internal.h>

#include <algorithm>
#include <cstring>

namespace binade::data {
namespace {

using internal::DecodeRequest;

bool starts_with(std::span<const uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// Common formats that Binade does not decode, so that the error can name the format.
const char* known_foreign_format(std::span<const uint8_t> bytes) {
  if (starts_with(bytes, std::string_view("II*\0", 4)) ||
      starts_with(bytes, std::string_view("MM\0*", 4))) {
    return "a TIFF";
  }
  if (starts_with(bytes, "\x1f\x8b")) {
    return "gzip-compressed";
  }
  if (starts_with(bytes, "8BPS")) {
    return "a Photoshop file";
  }
  const auto head = bytes.first(std::min<size_t>(bytes.size(), 64));
  const bool text = std::all_of(head.begin(), head.end(), [](uint8_t c) {
    return c == '\t' || c == '\n' || c == '\r' || (c >= 32 && c != 127);
  });
  return text ? "text" : "an unknown format";
}

// A file format: its signature test and its decoder.
struct Format {
  const char* name;
  bool (*begins)(std::span<const uint8_t> bytes);
  Image (*decode)(const DecodeRequest& request);
};

using Bytes = std::span<const uint8_t>;
// TGA comes last: it has no signature.
constexpr Format kFormats[] = {
    {"JPEG", [](Bytes b) { return starts_with(b, "\xff\xd8"); }, internal::decode_jpeg},
    {"PNG", [](Bytes b) { return starts_with(b, "\x89PNG"); }, internal::decode_png},
    {"BMP", [](Bytes b) { return starts_with(b, "BM"); }, internal::decode_bmp},
    {"PNM", internal::looks_like_pnm, internal::decode_pnm},
    {"GIF", [](Bytes b) { return starts_with(b, "GIF8"); }, internal::decode_gif},
    {"WebP", internal::looks_like_webp, internal::decode_webp},
    {"TGA", internal::looks_like_tga, internal::decode_tga}};

const Format* format_of(std::span<const uint8_t> bytes) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const Format& format) { return format.begins(bytes); });
  return found == std::end(kFormats) ? nullptr : found;
}

Image decode(const DecodeRequest& request) {
  if (const Format* format = format_of(request.bytes)) {
    return format->decode(request);
  }
  request.reject("not an image Binade reads: ", known_foreign_format(request.bytes),
                 ", expected JPEG, PNG, BMP, PNM, GIF, WebP or TGA");
}

// Returns the TIFF part of the EXIF block in a JPEG, or nothing.
std::span<const uint8_t> jpeg_exif(std::span<const uint8_t> bytes) {
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == 0xff) {
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xff) {
      ++at;  // fill byte
      continue;
    }
    if (marker == 0xda || marker == 0xd9) {
      break;
    }
    const size_t length = internal::read_u16_be(&bytes[at + 2]);
    if (length < 2 || at + 2 + length > bytes.size()) {
      break;
    }
    const auto payload = bytes.subspan(at + 4, length - 2);
    if (marker == 0xe1 && starts_with(payload, std::string_view("Exif\0\0", 6))) {
      return payload.subspan(6);
    }
    at += 2 + length;
  }
  return {};
}

std::span<const uint8_t> png_exif(std::span<const uint8_t> bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = internal::read_u32_be(&bytes[at]);
    if (length > bytes.size() - at - 12) {
      break;
    }
    if (starts_with(bytes.subspan(at + 4), "eXIf")) {
      return bytes.subspan(at + 8, length);
    }
    at += 12 + length;
  }
  return {};
}

}  // namespace

Image make_image(int height, int width, int channels) {
  Image image{height, width, channels, {}};
  image.pixels.resize(static_cast<size_t>(height) * width * channels);
  return image;
}

Image decode_image(std::span<const uint8_t> bytes, std::string_view path,
                   const DecodeOptions& options) {
  const DecodeRequest request{bytes, path, options};
  internal::check_request(request);
  Image image = decode(request);
  if (!options.apply_orientation) {
    return image;
  }
  return internal::apply_orientation(std::move(image), internal::orientation_of(bytes));
}

std::string_view image_format(std::span<const uint8_t> bytes) {
  const Format* format = format_of(bytes);
  return format == nullptr ? std::string_view() : format->name;
}

int image_orientation(std::span<const uint8_t> bytes) {
  return bytes.empty() ? 1 : internal::orientation_of(bytes);
}

std::vector<uint8_t> read_file(const std::string& path, int64_t max_bytes) {
  const TimelineSpan span(Activity::data, TimelineEvent::data, "read");
  const InputFile file(path);
  check(file.size() <= static_cast<uint64_t>(std::max<int64_t>(max_bytes, 0)), path,
        ": the file has ", file.size(), " bytes, the limit is ", max_bytes);
  std::vector<uint8_t> bytes(file.size());
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

Image read_image(const std::string& path, const DecodeOptions& options) {
  return decode_image(read_file(path, options.limits.max_file_bytes), path, options);
}

namespace internal {

void check_request(const DecodeRequest& request) {
  const DecodeOptions& options = request.options;
  const auto bytes = request.bytes;
  check(options.channels == 0 || options.channels == 1 || options.channels == 3 ||
            options.channels == 4,
        "decode_image: got channels ", options.channels, ", expected 0, 1, 3 or 4");
  if (bytes.empty()) {
    request.reject("the file is empty");
  }
  if (bytes.size() > static_cast<size_t>(std::max<int64_t>(options.limits.max_file_bytes, 0))) {
    request.reject("the file has ", bytes.size(), " bytes, the limit is ",
                   options.limits.max_file_bytes);
  }
}

int orientation_of(std::span<const uint8_t> bytes) {
  const auto exif = bytes[0] == 0xff         ? jpeg_exif(bytes)
                    : bytes[0] == 0x89       ? png_exif(bytes)
                    : looks_like_webp(bytes) ? webp_exif(bytes)
                                             : bytes.first(0);
  return tiff_orientation(exif);
}

bool looks_like_webp(std::span<const uint8_t> bytes) {
  return bytes.size() >= 12 && starts_with(bytes, "RIFF") && starts_with(bytes.subspan(8), "WEBP");
}

void check_size(const DecodeRequest& request, int64_t height, int64_t width) {
  const DecodeLimits& limits = request.options.limits;
  if (height < 1 || width < 1) {
    request.reject("the header says ", width, " x ", height, " pixels, expected at least 1 x 1");
  }
  if (height > limits.max_side || width > limits.max_side) {
    request.reject("the header says ", width, " x ", height, " pixels, the limit of a side is ",
                   limits.max_side, " (DecodeLimits::max_side)");
  }
  if (height * width > limits.max_pixels) {
    request.reject("the header says ", width, " x ", height, " pixels, the limit is ",
                   limits.max_pixels, " in all (DecodeLimits::max_pixels)");
  }
  const int64_t bytes = height * width * request.channels(3);
  const auto in_file = static_cast<double>(request.bytes.size());
  if (bytes > limits.ratio_from && static_cast<double>(bytes) > limits.max_ratio * in_file) {
    request.reject("the header says ", width, " x ", height, " pixels, ", bytes, " bytes from ",
                   request.bytes.size(), ", the limit is a ratio of ", limits.max_ratio,
                   " (DecodeLimits::max_ratio)");
  }
}

Image convert_channels(Image image, int channels) {
  if (image.channels == channels) {
    return image;
  }
  Image out = make_image(image.height, image.width, channels);
  const size_t pixels = static_cast<size_t>(image.height) * image.width;
  const size_t green = image.channels == 3 ? 1 : 0, blue = 2 * green;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* from = &image.pixels[i * image.channels];
    uint8_t* to = &out.pixels[i * channels];
    if (channels == 1) {
      to[0] = luma(from[0], from[green], from[blue]);
      continue;
    }
    to[0] = from[0];
    to[1] = from[green];
    to[2] = from[blue];
    if (channels == 4) {
      to[3] = 255;
    }
  }
  return out;
}

}  // namespace internal
}  // namespace binade::data
