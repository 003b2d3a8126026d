// BMP without compression: palettes of 1 to 8 bits, and 16, 24 or 32 bits with or without masks.
// Samples of n bits become v * 255 / (2^n - 1), rounded down, as in Pillow.
#include <binade/data/decode_internal.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace binade::data::internal {
namespace {

// The bits of one colour in a pixel.
struct Mask {
  uint32_t bits = 0;

  uint8_t read(uint32_t pixel, uint8_t without) const {
    if (bits == 0) {
      return without;
    }
    const uint64_t largest = bits >> std::countr_zero(bits);
    return static_cast<uint8_t>(((pixel & bits) >> std::countr_zero(bits)) * 255 / largest);
  }
};

struct BmpHeader {
  uint64_t data_at = 0, length = 0;
  int64_t width = 0, height = 0;
  bool bottom_up = true;
  uint32_t bits = 0, compression = 0, colors = 0;

  bool old() const { return length == 12; }
};

BmpHeader read_bmp_header(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  request.need("BMP", 26);
  BmpHeader h{.data_at = read_u32_le(&bytes[10]), .length = read_u32_le(&bytes[14])};
  constexpr uint64_t kLengths[] = {12, 40, 52, 56, 64, 108, 124};
  if (std::find(std::begin(kLengths), std::end(kLengths), h.length) == std::end(kLengths)) {
    request.reject("BMP header of ", h.length, " bytes, expected 12, 40, 52, 56, 64, 108 or 124");
  }
  request.need("BMP", 14 + h.length);
  if (h.old()) {
    h.width = read_u16_le(&bytes[18]);
    h.height = read_u16_le(&bytes[20]);
    h.bits = read_u16_le(&bytes[24]);
  } else {
    const int64_t height = static_cast<int32_t>(read_u32_le(&bytes[22]));
    h.width = static_cast<int32_t>(read_u32_le(&bytes[18]));
    h.height = height < 0 ? -height : height;
    h.bottom_up = height > 0;
    h.bits = read_u16_le(&bytes[28]);
    h.compression = read_u32_le(&bytes[30]);
    h.colors = read_u32_le(&bytes[46]);
  }
  check_size(request, h.height, h.width);
  constexpr uint32_t kBits[] = {1, 2, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kBits), std::end(kBits), h.bits) == std::end(kBits)) {
    request.reject("BMP of ", h.bits, " bits, expected 1, 2, 4, 8, 16, 24 or 32");
  }
  if (h.compression != 0 && (h.compression != 3 || h.length == 64 || h.bits % 16 != 0)) {
    request.reject("compressed BMP (kind ", h.compression, "), expected an uncompressed one");
  }
  return h;
}

class BmpReader {
 public:
  BmpReader(const DecodeRequest& request, const BmpHeader& header)
      : request_(request), header_(header) {
    uint64_t header_end = 14 + header.length;
    if (header.bits <= 8) {
      read_palette(header_end);
    } else if (header.compression == 3) {
      header_end += header.length == 40 ? 12 : 0;  // the masks come after the header
      read_masks();
    } else if (header.bits == 16) {
      masks_[0].bits = 0x7c00, masks_[1].bits = 0x3e0, masks_[2].bits = 0x1f;
    } else {
      masks_[0].bits = 0xff0000, masks_[1].bits = 0xff00, masks_[2].bits = 0xff;
    }
    if (header.data_at < header_end) {
      request.reject("corrupt BMP: pixels at byte ", header.data_at, ", inside the header");
    }
  }

  Image read() const {
    const uint64_t row_bytes = (static_cast<uint64_t>(header_.width) * header_.bits + 31) / 32 * 4;
    request_.need("BMP", header_.data_at + row_bytes * static_cast<uint64_t>(header_.height));
    Image image = make_image(static_cast<int>(header_.height), static_cast<int>(header_.width),
                             request_.channels(3));
    for (int y = 0; y < image.height; ++y) {
      request_.check_time();
      const uint8_t* row = &request_.bytes[header_.data_at + row_bytes * static_cast<uint64_t>(y)];
      uint8_t* to = image.row(header_.bottom_up ? image.height - 1 - y : y);
      for (int x = 0; x < image.width; ++x, to += image.channels) {
        store_pixel(to, image.channels, pixel(row, static_cast<size_t>(x)));
      }
    }
    return image;
  }

 private:
  void read_palette(uint64_t at) {
    const size_t entry = header_.old() ? 3 : 4;
    const uint64_t most = uint64_t(1) << header_.bits;
    const uint64_t fits = header_.data_at < at ? 0 : (header_.data_at - at) / entry;
    colors_ =
        std::min({header_.colors == 0 ? most : std::min<uint64_t>(header_.colors, most), fits});
    request_.need("BMP", at + colors_ * entry);
    for (size_t i = 0; i < colors_; ++i) {
      const uint8_t* color = &request_.bytes[at + i * entry];
      palette_[i] = {color[2], color[1], color[0], 255};
    }
  }

  void read_masks() {
    const size_t count = header_.length >= 56 ? 4 : 3;
    request_.need("BMP", 54 + 4 * count);
    for (size_t i = 0; i < count; ++i) {
      masks_[i].bits = read_u32_le(&request_.bytes[54 + 4 * i]);
      const uint32_t run =
          masks_[i].bits == 0 ? 0 : masks_[i].bits >> std::countr_zero(masks_[i].bits);
      if ((run & (run + 1)) != 0 || (i < 3 && run == 0)) {
        request_.reject("BMP with the mask ", masks_[i].bits, " of colour ",
                        static_cast<uint64_t>(i), ", expected bits side by side");
      }
    }
  }

  Pixel pixel(const uint8_t* row, size_t x) const {
    if (header_.bits <= 8) {
      const size_t bit = x * header_.bits;
      const uint32_t index =
          row[bit / 8] >> (8 - header_.bits - bit % 8) & ((1u << header_.bits) - 1);
      if (index >= colors_) {
        request_.reject("corrupt BMP: a pixel has colour ", index, ", the palette has ",
                        static_cast<uint64_t>(colors_), " colours");
      }
      return palette_[index];
    }
    if (header_.bits == 24) {
      return {row[3 * x + 2], row[3 * x + 1], row[3 * x], 255};
    }
    const uint32_t value = header_.bits == 16 ? read_u16_le(row + 2 * x) : read_u32_le(row + 4 * x);
    return {masks_[0].read(value, 0), masks_[1].read(value, 0), masks_[2].read(value, 0),
            masks_[3].read(value, 255)};
  }

  const DecodeRequest& request_;
  const BmpHeader& header_;
  std::array<Pixel, 256> palette_{};
  size_t colors_ = 0;
  std::array<Mask, 4> masks_{};  // red, green, blue, alpha
};

}  // namespace

Image decode_bmp(const DecodeRequest& request) {
  const BmpHeader header = read_bmp_header(request);
  return BmpReader(request, header).read();
}

}  // namespace binade::data::internal
