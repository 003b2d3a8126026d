// TGA with colour maps, grey, or 15, 16, 24 or 32 bits, plain or run-length encoded. Nothing may
// follow the pixels in version 1; in version 2, areas and a footer that points to them. Other bytes
// mean that the size in the header is wrong. Source: Truevision TGA file format specification 2.0.
#include <binade/data/decode_internal.h>

#include <algorithm>

namespace binade::data::internal {
namespace {

constexpr size_t kTgaHeaderLength = 18;
constexpr int kRunLength = 8;  // bit of the type: run-length encoded
constexpr int kMapped = 1, kGrey = 3;
constexpr int kFromRight = 0x10, kFromTop = 0x20;  // bits of the descriptor

struct TgaHeader {
  int id_length, map_type, type, map_first, map_length, map_bits, width, height, bits, descriptor;

  int kind() const { return type & ~kRunLength; }
  size_t pixel_bytes() const { return static_cast<size_t>(bits + 7) / 8; }
  size_t map_entry_bytes() const { return static_cast<size_t>(map_bits + 7) / 8; }
};

TgaHeader read_tga_header(std::span<const uint8_t> bytes) {
  const uint8_t* p = bytes.data();
  const auto u16 = [&](size_t at) { return static_cast<int>(read_u16_le(p + at)); };
  return {p[0], p[1], p[2], u16(3), u16(5), p[7], u16(12), u16(14), p[16], p[17]};
}

// A colour of 15, 16, 24 or 32 bits.
Pixel color_at(const uint8_t* p, int bits) {
  if (bits <= 16) {
    const uint32_t value = read_u16_le(p);
    const auto wide = [&](int shift) {
      return static_cast<uint8_t>((value >> shift & 31) * 255 / 31);
    };
    return {wide(10), wide(5), wide(0), 255};
  }
  return {p[2], p[1], p[0], bits == 32 ? p[3] : uint8_t(255)};
}

class TgaReader {
 public:
  explicit TgaReader(const DecodeRequest& request)
      : request_(request), header_(read_tga_header(request.bytes)) {
    const TgaHeader& h = header_;
    check_size(request, h.height, h.width);
    const bool good_bits = h.kind() == kMapped ? h.bits == 8 || h.bits == 16
                           : h.kind() == kGrey ? h.bits == 8 || h.bits == 16
                                               : h.bits != 8;
    const bool good_map =
        h.map_bits == 15 || h.map_bits == 16 || h.map_bits == 24 || h.map_bits == 32;
    if (!good_bits || (h.kind() == kMapped && !good_map)) {
      request.reject("TGA of type ", h.type, " with ", h.bits, " bits and a colour map of ",
                     h.map_bits, " bits, which Binade does not read");
    }
    map_at_ = kTgaHeaderLength + static_cast<size_t>(h.id_length);
    at_ = map_at_ + (h.map_type == 0 ? 0 : static_cast<size_t>(h.map_length) * h.map_entry_bytes());
    request.need("TGA", at_);
  }

  Image read() {
    const TgaHeader& h = header_;
    check_extent();
    Image image = make_image(h.height, h.width, request_.channels(h.kind() == kGrey ? 1 : 3));
    for (int y = 0; y < h.height; ++y) {
      request_.check_time();
      uint8_t* row = image.row((h.descriptor & kFromTop) != 0 ? y : h.height - 1 - y);
      for (int x = 0; x < h.width; ++x) {
        const int column = (h.descriptor & kFromRight) != 0 ? h.width - 1 - x : x;
        store_pixel(row + column * image.channels, image.channels, next_pixel());
      }
    }
    return image;
  }

 private:
  // Checks that the file holds all pixels, before the memory of the picture is allocated.
  void check_extent() const {
    uint64_t pixels = uint64_t(header_.width) * static_cast<uint64_t>(header_.height);
    const uint64_t size = header_.pixel_bytes();
    if ((header_.type & kRunLength) == 0) {
      request_.need("TGA", at_ + pixels * size);
      return check_end(at_ + pixels * size);
    }
    uint64_t at = at_;
    while (pixels > 0) {
      request_.need("TGA", at + 1);
      const uint64_t count = (request_.bytes[at] & 0x7f) + uint64_t(1);
      at += 1 + ((request_.bytes[at] & 0x80) != 0 ? 1 : count) * size;
      request_.need("TGA", at);
      if (count > pixels) {
        request_.reject("corrupt TGA: a packet of ", count, " pixels where ", pixels, " are left");
      }
      pixels -= count;
    }
    check_end(at);
  }

  // Reads a file offset at byte `at`; 0: none.
  uint64_t place_at(uint64_t at) const {
    return at + 4 <= request_.bytes.size() ? read_u32_le(&request_.bytes[at]) : 0;
  }

  // The first byte after the pixels that the footer of version 2 accounts for: the start of one of
  // its two areas, or of a block that these point to.
  uint64_t first_area(uint64_t footer) const {
    constexpr uint64_t kTables = 482;  // offset in the extension area: colours, stamp, scan lines
    constexpr uint64_t kTagBytes = 10, kTagPlace = 4;
    uint64_t first = footer;
    const auto add = [&](uint64_t place) { first = place == 0 ? first : std::min(first, place); };
    if (const uint64_t extension = place_at(footer); extension != 0) {
      add(extension);
      for (uint64_t i = 0; i < 3; ++i) {
        add(place_at(extension + kTables + 4 * i));
      }
    }
    if (const uint64_t directory = place_at(footer + 4); directory != 0 && directory < footer) {
      add(directory);
      const uint64_t tags = read_u16_le(&request_.bytes[directory]);
      for (uint64_t i = 0; i < tags; ++i) {
        add(place_at(directory + kTagPlace + kTagBytes * i));
      }
    }
    return first;
  }

  void check_end(uint64_t end) const {
    constexpr std::string_view kTgaSignature("TRUEVISION-XFILE.\0", 18);
    constexpr size_t kTgaFooter = 8 + kTgaSignature.size();
    const auto bytes = request_.bytes;
    uint64_t expected = bytes.size();
    if (bytes.size() >= end + kTgaFooter &&
        std::memcmp(&bytes[bytes.size() - kTgaSignature.size()], kTgaSignature.data(),
                    kTgaSignature.size()) == 0) {
      expected = first_area(bytes.size() - kTgaFooter);
    }
    if (end != expected) {
      request_.reject("corrupt TGA: the pixels end at byte ", end, ", expected ", expected);
    }
  }

  Pixel next_pixel() {
    const size_t size = header_.pixel_bytes();
    if ((header_.type & kRunLength) == 0) {
      at_ += size;
      return pixel_at(at_ - size);
    }
    if (left_ == 0) {
      const uint8_t packet = request_.bytes[at_++];
      left_ = (packet & 0x7f) + 1;
      is_run_ = (packet & 0x80) != 0;
      if (is_run_) {
        run_ = pixel_at(at_);
        at_ += size;
      }
    }
    --left_;
    if (is_run_) {
      return run_;
    }
    at_ += size;
    return pixel_at(at_ - size);
  }

  Pixel pixel_at(size_t at) const {
    const uint8_t* p = &request_.bytes[at];
    if (header_.kind() == kGrey) {
      return {p[0], p[0], p[0], header_.bits == 16 ? p[1] : uint8_t(255)};
    }
    if (header_.kind() != kMapped) {
      return color_at(p, header_.bits);
    }
    const int index = static_cast<int>(header_.bits == 8 ? p[0] : read_u16_le(p));
    const int entry = index - header_.map_first;
    if (entry < 0 || entry >= header_.map_length) {
      request_.reject("corrupt TGA: a pixel has colour ", index, ", the colour map has ",
                      header_.map_length, " from ", header_.map_first);
    }
    const size_t entry_at = map_at_ + static_cast<size_t>(entry) * header_.map_entry_bytes();
    return color_at(&request_.bytes[entry_at], header_.map_bits);
  }

  const DecodeRequest& request_;
  const TgaHeader header_;
  size_t map_at_, at_;  // the colour map; the next byte of the pixels
  int left_ = 0;        // pixels left in the packet
  bool is_run_ = false;
  Pixel run_{};
};

}  // namespace

bool looks_like_tga(std::span<const uint8_t> bytes) {
  if (bytes.size() < kTgaHeaderLength) {
    return false;
  }
  const TgaHeader header = read_tga_header(bytes);
  const bool bits = header.bits == 8 || header.bits == 15 || header.bits == 16 ||
                    header.bits == 24 || header.bits == 32;
  return header.kind() >= 1 && header.kind() <= 3 &&
         header.map_type == (header.kind() == kMapped ? 1 : 0) && bits && header.width > 0 &&
         header.height > 0;
}

Image decode_tga(const DecodeRequest& request) { return TgaReader(request).read(); }

}  // namespace binade::data::internal
