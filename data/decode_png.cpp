// PNG: checks the chunk structure (signature, IHDR first, CRC-32 of every chunk, at least one IDAT,
// IEND at the very end). decode_png_pixels.cpp decodes the pixels.
#include <binade/data/decode_png_internal.h>
#include <zlib.h>

#include <algorithm>
#include <array>

namespace binade::data::internal {
namespace {

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr size_t kChunkOverhead = 12;  // length, type, CRC
constexpr size_t kPngHeaderLength = 13;

constexpr uint32_t chunk_type(const char (&name)[5]) {
  return uint32_t(uint8_t(name[0])) << 24 | uint32_t(uint8_t(name[1])) << 16 |
         uint32_t(uint8_t(name[2])) << 8 | uint8_t(name[3]);
}

struct Chunk {
  uint32_t type;
  std::span<const uint8_t> data;
};

// Reads the chunk at `at` and checks its CRC.
Chunk read_chunk(const DecodeRequest& request, size_t at) {
  const auto rest = request.bytes.subspan(at);
  if (rest.size() < kChunkOverhead) {
    request.reject("truncated PNG: no IEND chunk at byte ", at);
  }
  const size_t length = read_u32_be(rest.data());
  if (length > rest.size() - kChunkOverhead) {
    request.reject("truncated or corrupt PNG: the chunk at byte ", at, " says ", length,
                   " bytes, the file has ", rest.size() - kChunkOverhead, " left");
  }
  const auto covered = rest.subspan(4, 4 + length);
  const uint32_t stored = read_u32_be(&rest[8 + length]);
  if (::crc32(0, covered.data(), static_cast<uInt>(covered.size())) != stored) {
    request.reject("corrupt PNG: wrong CRC of the chunk at byte ", at);
  }
  return {read_u32_be(covered.data()), covered.subspan(4)};
}

void check_header(const DecodeRequest& request, std::span<const uint8_t> p) {
  const int depth = p[8], color_type = p[9];
  const bool few = color_type == 0 || color_type == kPngPalette;  // these may have depths below 8
  const bool good = depth == 8 || (depth == 16 && color_type != kPngPalette) ||
                    (few && (depth == 1 || depth == 2 || depth == 4));
  if (png_samples(color_type) == 0 || !good) {
    request.reject("corrupt PNG: colour type ", color_type, " with ", depth, " bits");
  }
  if (p[10] != 0 || p[11] != 0 || p[12] > 1) {
    request.reject("corrupt PNG: compression, filter and interlace methods ", int{p[10]}, ", ",
                   int{p[11]}, ", ", int{p[12]}, ", expected 0, 0 and 0 or 1");
  }
}

PngHeader read_png_header(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  if (bytes.size() < kSignature.size() ||
      !std::equal(kSignature.begin(), kSignature.end(), bytes.begin())) {
    request.reject("corrupt PNG: wrong signature");
  }
  const Chunk chunk = read_chunk(request, kSignature.size());
  if (chunk.type != chunk_type("IHDR") || chunk.data.size() != kPngHeaderLength) {
    request.reject("corrupt PNG: the first chunk is not a header",
                   chunk.type == chunk_type("CgBI") ? " (an iPhone-optimised file)" : "");
  }
  const uint8_t* p = chunk.data.data();
  const PngHeader header{read_u32_be(p + 4), read_u32_be(p), p[8], p[9], p[12] == 1};
  check_size(request, header.height, header.width);
  check_header(request, chunk.data);
  return header;
}

// Checks every chunk up to IEND.
PngChunks read_chunks(const DecodeRequest& request) {
  PngChunks found;
  size_t at = kSignature.size();
  for (int count = 0;; ++count) {
    const Chunk chunk = read_chunk(request, at);
    if (chunk.type == chunk_type("PLTE")) {
      found.palette = chunk.data;
    } else if (chunk.type == chunk_type("tRNS")) {
      found.transparency = chunk.data;
    } else if (chunk.type == chunk_type("IDAT")) {
      found.data.push_back(chunk.data);
    }
    at += kChunkOverhead + chunk.data.size();
    if (chunk.type == chunk_type("IHDR") && count > 0) {
      request.reject("corrupt PNG: a second header");
    }
    if (chunk.type == chunk_type("IEND")) {
      break;
    }
  }
  if (at != request.bytes.size()) {
    request.reject("corrupt PNG: ", request.bytes.size() - at, " bytes after its end");
  }
  if (found.data.empty()) {
    request.reject("corrupt PNG: no pixel data");
  }
  return found;
}

}  // namespace

Image decode_png(const DecodeRequest& request) {
  const PngHeader header = read_png_header(request);
  return read_png_pixels(request, header, read_chunks(request));
}

}  // namespace binade::data::internal
