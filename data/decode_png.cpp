// PNG: this file checks the chunk structure (signature, IHDR first, CRC-32 of every chunk, at least
// one IDAT, IEND at the very end); stb_image decodes the pixels and checks none of it.
#include <binade/data/decode_internal.h>
#include <zlib.h>

#include <algorithm>
#include <array>

namespace binade::data::internal {
namespace {

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr size_t kChunkOverhead = 12;  // length, type, CRC
constexpr size_t kHeaderLength = 13;

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

struct Header {
  int64_t height, width;
  int bit_depth, color_type;
};

Header read_header(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  if (bytes.size() < kSignature.size() ||
      !std::equal(kSignature.begin(), kSignature.end(), bytes.begin())) {
    request.reject("corrupt PNG: wrong signature");
  }
  const Chunk chunk = read_chunk(request, kSignature.size());
  if (chunk.type != chunk_type("IHDR") || chunk.data.size() != kHeaderLength) {
    request.reject("corrupt PNG: the first chunk is not a header",
                   chunk.type == chunk_type("CgBI") ? " (an iPhone-optimised file)" : "");
  }
  const uint8_t* p = chunk.data.data();
  return {read_u32_be(p + 4), read_u32_be(p), p[8], p[9]};
}

struct Structure {
  size_t data_chunks = 0;
  size_t palette_at = 0, palette_bytes = 0;  // the PLTE chunk
};

// Checks every chunk up to IEND.
Structure check_chunks(const DecodeRequest& request) {
  Structure found;
  size_t at = kSignature.size();
  for (int count = 0;; ++count) {
    const Chunk chunk = read_chunk(request, at);
    if (chunk.type == chunk_type("PLTE")) {
      found.palette_at = at;
      found.palette_bytes = chunk.data.size();
    }
    found.data_chunks += chunk.type == chunk_type("IDAT");
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
  if (found.data_chunks == 0) {
    request.reject("corrupt PNG: no pixel data");
  }
  return found;
}

// The file with its palette padded to `entries` with black. Otherwise stb_image would read the
// colour of an index beyond the palette from uninitialised memory.
std::vector<uint8_t> with_full_palette(const DecodeRequest& request, const Structure& structure,
                                       size_t entries) {
  const auto bytes = request.bytes;
  const size_t data_end = structure.palette_at + 8 + structure.palette_bytes;
  const size_t length = 3 * entries;
  std::vector<uint8_t> out(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(data_end));
  for (int i = 0; i < 4; ++i) {
    out[structure.palette_at + i] = static_cast<uint8_t>(length >> (24 - 8 * i));
  }
  out.resize(out.size() + length - structure.palette_bytes);
  out.insert(out.end(), bytes.begin() + static_cast<ptrdiff_t>(data_end), bytes.end());
  return out;
}

}  // namespace

Image decode_png(const DecodeRequest& request) {
  const Header header = read_header(request);
  check_size(request, header.height, header.width);
  const Structure structure = check_chunks(request);
  constexpr int kColorBit = 2, kPalette = 3;  // of color_type: RGB or palette
  const int channels = request.channels((header.color_type & kColorBit) != 0 ? 3 : 1);
  const size_t entries = size_t(1) << std::min(header.bit_depth, 8);
  if (header.color_type == kPalette && structure.palette_at != 0 &&
      structure.palette_bytes % 3 == 0 && structure.palette_bytes < 3 * entries) {
    const std::vector<uint8_t> filled = with_full_palette(request, structure, entries);
    return decode_with_stb({filled, request.path, request.options}, header.height, header.width,
                           channels);
  }
  return decode_with_stb(request, header.height, header.width, channels);
}

}  // namespace binade::data::internal
