// BMP and TGA: stb_image decodes the pixels, and this file checks the exact extent, because
// stb_image reads zeros after an early end. PNM is decoded here.
#include <binade/data/decode_internal.h>

#include <algorithm>
#include <cctype>

namespace binade::data::internal {
namespace {

void need_bytes(const DecodeRequest& request, const char* format, uint64_t needed) {
  if (request.bytes.size() < needed) {
    request.reject("truncated ", format, ": the header needs ", needed, " bytes, the file has ",
                   request.bytes.size());
  }
}

// Reads a positive decimal number after white space and comments, and moves `at` after it.
int64_t pnm_number(const DecodeRequest& request, size_t& at) {
  const auto bytes = request.bytes;
  while (at < bytes.size() && (std::isspace(bytes[at]) != 0 || bytes[at] == '#')) {
    if (bytes[at] == '#') {
      while (at < bytes.size() && bytes[at] != '\n' && bytes[at] != '\r') {
        ++at;
      }
    } else {
      ++at;
    }
  }
  constexpr int64_t kMax = 1'000'000'000;
  int64_t value = 0;
  const size_t first = at;
  for (; at < bytes.size() && std::isdigit(bytes[at]) != 0; ++at) {
    value = std::min(value * 10 + (bytes[at] - '0'), kMax);
  }
  if (at == first) {
    request.reject("corrupt PNM: no number at byte ", at);
  }
  return value;
}

struct TgaHeader {
  int id_length, map_type, type, map_length, map_bits, width, height, bits;
};

TgaHeader tga_header(std::span<const uint8_t> bytes) {
  const uint8_t* p = bytes.data();
  return {p[0],
          p[1],
          p[2],
          static_cast<int>(read_u16_le(p + 5)),
          p[7],
          static_cast<int>(read_u16_le(p + 12)),
          static_cast<int>(read_u16_le(p + 14)),
          p[16]};
}

constexpr size_t kTgaHeaderLength = 18;
constexpr int kTgaRunLength = 8;  // bit of the type: packets of runs

// Checks the run-length packets from `at`; all pixels must be present.
void check_tga_runs(const DecodeRequest& request, size_t at, uint64_t pixels, size_t pixel_bytes) {
  const auto bytes = request.bytes;
  while (pixels > 0) {
    need_bytes(request, "TGA", at + 1);
    const uint64_t count = (bytes[at] & 0x7f) + uint64_t(1);
    const uint64_t stored = (bytes[at] & 0x80) != 0 ? 1 : count;
    at += 1 + stored * pixel_bytes;
    need_bytes(request, "TGA", at);
    pixels -= std::min(pixels, count);
  }
}

}  // namespace

Image decode_bmp(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  need_bytes(request, "BMP", 26);
  const uint64_t data_at = read_u32_le(&bytes[10]), header_length = read_u32_le(&bytes[14]);
  const bool old = header_length == 12;
  if (!old && header_length != 40 && header_length != 56 && header_length != 108 &&
      header_length != 124) {
    request.reject("BMP header of ", header_length, " bytes, expected 12, 40, 56, 108 or 124");
  }
  need_bytes(request, "BMP", 14 + header_length);
  const int64_t width = old ? int64_t(read_u16_le(&bytes[18]))
                            : int64_t(static_cast<int32_t>(read_u32_le(&bytes[18])));
  const int64_t signed_height = old ? int64_t(read_u16_le(&bytes[20]))
                                    : int64_t(static_cast<int32_t>(read_u32_le(&bytes[22])));
  const int64_t height = signed_height < 0 ? -signed_height : signed_height;
  check_size(request, height, width);
  const uint64_t bits = read_u16_le(&bytes[old ? 24 : 28]);
  const uint32_t compression = old ? 0 : read_u32_le(&bytes[30]);
  if (compression != 0 && compression != 3) {
    request.reject("compressed BMP (kind ", compression, "), expected an uncompressed one");
  }
  if (data_at < 14 + header_length) {
    request.reject("corrupt BMP: pixels at byte ", data_at, ", inside the header");
  }
  const uint64_t row_bytes = (static_cast<uint64_t>(width) * bits + 31) / 32 * 4;
  need_bytes(request, "BMP", data_at + row_bytes * static_cast<uint64_t>(height));
  return decode_with_stb(request, height, width, request.channels(3));
}

bool looks_like_tga(std::span<const uint8_t> bytes) {
  if (bytes.size() < kTgaHeaderLength) {
    return false;
  }
  const TgaHeader header = tga_header(bytes);
  const int kind = header.type & ~kTgaRunLength;
  const bool bits = header.bits == 8 || header.bits == 15 || header.bits == 16 ||
                    header.bits == 24 || header.bits == 32;
  return kind >= 1 && kind <= 3 && header.map_type == (kind == 1 ? 1 : 0) && bits &&
         header.width > 0 && header.height > 0;
}

Image decode_tga(const DecodeRequest& request) {
  const TgaHeader header = tga_header(request.bytes);
  check_size(request, header.height, header.width);
  const uint64_t map_bytes =
      header.map_type == 0 ? 0 : uint64_t(header.map_length) * ((header.map_bits + 7) / 8);
  const uint64_t data_at = kTgaHeaderLength + header.id_length + map_bytes;
  const uint64_t pixels = uint64_t(header.width) * header.height;
  const size_t pixel_bytes = (header.bits + 7) / 8;
  if ((header.type & kTgaRunLength) != 0) {
    check_tga_runs(request, data_at, pixels, pixel_bytes);
  } else {
    need_bytes(request, "TGA", data_at + pixels * pixel_bytes);
  }
  const bool grey = (header.type & ~kTgaRunLength) == 3;
  return decode_with_stb(request, header.height, header.width, request.channels(grey ? 1 : 3));
}

Image decode_pnm(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  if (bytes[1] != '5' && bytes[1] != '6') {
    request.reject("PNM of kind P", static_cast<char>(bytes[1]), ", expected P5 or P6");
  }
  const int channels = bytes[1] == '5' ? 1 : 3;
  size_t at = 2;
  const int64_t width = pnm_number(request, at), height = pnm_number(request, at);
  const int64_t largest = pnm_number(request, at);
  check_size(request, height, width);
  if (largest < 1 || largest > 65535) {
    request.reject("corrupt PNM: largest value ", largest, ", expected 1 to 65535");
  }
  const size_t value_bytes = largest > 255 ? 2 : 1;
  const size_t values = static_cast<size_t>(width * height) * channels;
  ++at;  // one white space character
  need_bytes(request, "PNM", at + values * value_bytes);
  Image image = make_image(static_cast<int>(height), static_cast<int>(width), channels);
  const auto top = static_cast<uint32_t>(largest);
  for (size_t i = 0; i < values; ++i) {
    const uint32_t value = value_bytes == 1 ? bytes[at + i] : read_u16_be(&bytes[at + 2 * i]);
    image.pixels[i] = static_cast<uint8_t>((std::min(value, top) * 255 + top / 2) / top);
  }
  return convert_channels(std::move(image), request.channels(channels));
}

}  // namespace binade::data::internal
