// BMP with palettes of 1 to 8 bits (4 and 8 also run-length encoded, RLE4 and RLE8) or with 16, 24
// or 32 bits, with or without masks; headers of Windows and OS/2. Pixels that runs leave out have
// colour 0, and samples of n bits become v * 255 / (2^n - 1), rounded down, as in Pillow.
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
  uint64_t pixel_bytes = 0;  // 0: not given

  bool old() const { return length == 12; }
  bool has_runs() const { return compression == 1 || compression == 2; }
  bool has_masks() const { return compression == 3 || compression == 6; }
  size_t masks() const { return length >= 56 || compression == 6 ? 4 : 3; }
};

BmpHeader read_bmp_header(const DecodeRequest& request) {
  const auto bytes = request.bytes;
  request.need("BMP", 26);
  BmpHeader h{.data_at = read_u32_le(&bytes[10]), .length = read_u32_le(&bytes[14])};
  constexpr uint64_t kLengths[] = {12, 16, 40, 52, 56, 64, 108, 124};
  if (std::find(std::begin(kLengths), std::end(kLengths), h.length) == std::end(kLengths)) {
    request.reject("BMP header of ", h.length,
                   " bytes, expected 12, 16, 40, 52, 56, 64, 108 or 124");
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
    if (h.length > 16) {
      h.compression = read_u32_le(&bytes[30]);
      h.pixel_bytes = read_u32_le(&bytes[34]);
      h.colors = read_u32_le(&bytes[46]);
    }
  }
  check_size(request, h.height, h.width);
  constexpr uint32_t kBits[] = {1, 2, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kBits), std::end(kBits), h.bits) == std::end(kBits)) {
    request.reject("BMP of ", h.bits, " bits, expected 1, 2, 4, 8, 16, 24 or 32");
  }
  const bool fits = h.compression == 0 || (h.compression == 1 && h.bits == 8) ||
                    (h.compression == 2 && h.bits == 4) ||
                    (h.has_masks() && h.length != 64 && h.bits >= 16);
  if (!fits) {
    request.reject("BMP of ", h.bits, " bits with compression ", h.compression,
                   ", expected none, RLE8 of 8 bits, RLE4 of 4 bits, or masks");
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
    } else if (header.has_masks()) {
      header_end += header.length == 40 ? 4 * header.masks() : 0;  // masks come after the header
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

  Image read() const { return header_.has_runs() ? read_runs() : read_rows(); }

 private:
  Image read_rows() const {
    const uint64_t row_bytes = (static_cast<uint64_t>(header_.width) * header_.bits + 31) / 32 * 4;
    const uint64_t all = row_bytes * static_cast<uint64_t>(header_.height);
    request_.need("BMP", header_.data_at + all);
    // Some programs count two bytes more, or write a size larger than the file: both are accepted.
    if (header_.pixel_bytes >= all + row_bytes &&
        request_.bytes.size() >= header_.data_at + header_.pixel_bytes) {
      request_.reject("corrupt BMP: the header says ", header_.pixel_bytes, " bytes of pixels, ",
                      header_.width, " x ", header_.height, " of ", header_.bits, " bits are ",
                      all);
    }
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

  // The data are pairs of bytes: a run of one colour (in RLE4, two colours by turns), or a zero and
  // the end of a row (0), the end of the picture (1), a move right and up (2), or a number of
  // colours that follow one by one, padded to two bytes.
  Image read_runs() const {
    Image image = make_image(static_cast<int>(header_.height), static_cast<int>(header_.width),
                             request_.channels(3));
    for (size_t i = 0; i < image.pixels.size(); i += static_cast<size_t>(image.channels)) {
      store_pixel(&image.pixels[i], image.channels, palette_[0]);
    }
    Place to{image};
    for (uint64_t at = header_.data_at;;) {
      if (at >= request_.bytes.size() && is_full(to)) {
        return image;  // only the end mark is missing
      }
      const uint8_t* pair = run_bytes(at, 2, to);
      if (pair[0] > 0) {
        store_run(to, pair[0], [&](int i) { return run_color(pair[1], i); });
      } else if (pair[1] > 2) {
        const uint64_t bytes = (uint64_t(pair[1]) * header_.bits + 15) / 16 * 2;
        const uint8_t* colors = run_bytes(at, bytes, to);
        store_run(to, pair[1], [&](int i) {
          return header_.bits == 8 ? colors[i] : run_color(colors[i / 2], i);
        });
      } else if (pair[1] == 2) {
        const uint8_t* move = run_bytes(at, 2, to);
        to.column += move[0];
        to.row += move[1];
        check_place(to, 0);
      } else if (pair[1] == 0) {
        request_.check_time();
        to.column = 0;
        ++to.row;
        if (to.row > image.height) {
          request_.reject("corrupt BMP: more than ", image.height, " rows");
        }
      } else {
        if (to.row + 1 < image.height) {
          request_.reject("truncated BMP: the picture ends in row ", to.row, " of ", image.height);
        }
        return image;
      }
    }
  }

  // The place of the next pixel in a run; rows in file order.
  struct Place {
    Image& image;
    int row = 0, column = 0;
  };

  // True after the last pixel.
  static bool is_full(const Place& to) {
    const int rows = to.image.height;
    return to.row == rows || (to.row == rows - 1 && to.column == to.image.width);
  }

  const uint8_t* run_bytes(uint64_t& at, uint64_t count, const Place& to) const {
    if (request_.bytes.size() < at + count) {
      request_.reject("truncated BMP: the file ends in row ", to.row, " of ", to.image.height);
    }
    at += count;
    return &request_.bytes[at - count];
  }

  uint32_t run_color(uint8_t byte, int i) const {
    return header_.bits == 8 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15;
  }

  void check_place(const Place& to, int count) const {
    if (to.row >= to.image.height || to.column + count > to.image.width) {
      request_.reject("corrupt BMP: a run reaches pixel ", to.column + count, " of row ", to.row,
                      ", outside ", to.image.width, " x ", to.image.height);
    }
  }

  template <class Index>
  void store_run(Place& to, int count, Index index) const {
    check_place(to, count);
    Image& image = to.image;
    uint8_t* pixel = image.row(header_.bottom_up ? image.height - 1 - to.row : to.row) +
                     to.column * image.channels;
    for (int i = 0; i < count; ++i, pixel += image.channels) {
      store_pixel(pixel, image.channels, palette_color(index(i)));
    }
    to.column += count;
  }

  const Pixel& palette_color(uint32_t index) const {
    if (index >= colors_) {
      request_.reject("corrupt BMP: a pixel has colour ", index, ", the palette has ",
                      static_cast<uint64_t>(colors_), " colours");
    }
    return palette_[index];
  }

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
    const size_t count = header_.masks();
    request_.need("BMP", 54 + 4 * count);
    for (size_t i = 0; i < count; ++i) {
      masks_[i].bits = read_u32_le(&request_.bytes[54 + 4 * i]) & ~0u >> (32 - header_.bits);
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
      return palette_color(index);
    }
    if (header_.bits == 24 && !header_.has_masks()) {
      return {row[3 * x + 2], row[3 * x + 1], row[3 * x], 255};
    }
    const uint32_t value = header_.bits == 16   ? read_u16_le(row + 2 * x)
                           : header_.bits == 24 ? read_u16_le(row + 3 * x) | row[3 * x + 2] << 16
                                                : read_u32_le(row + 4 * x);
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
