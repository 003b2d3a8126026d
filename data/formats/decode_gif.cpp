// GIF: the first frame on a canvas as large as the screen. The LZW decoder here rejects a stream
// that ends early, has an impossible code, or has more pixels than the frame. Pixels outside the
// frame are black with alpha 0; transparent pixels keep the colour of the palette. If the frame
// extends beyond the screen, the picture covers both.
#include <binade/data/decode_internal.h>

#include <algorithm>

namespace binade::data::internal {
namespace {

constexpr size_t kScreenEnd = 13;  // signature, size, flags, background, aspect
constexpr int kMaxCodeBits = 12;
constexpr size_t kCodes = size_t{1} << kMaxCodeBits;
constexpr int kNoColour = -1;

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  size_t palette_at = 0, colours = 0;
  int transparent = kNoColour;  // palette index of transparent pixels
};

// Reads the blocks before the first frame.
class GifHeader {
 public:
  explicit GifHeader(const DecodeRequest& request) : request_(request) {
    request.need("GIF", kScreenEnd);
    const auto bytes = request.bytes;
    if (std::memcmp(bytes.data() + 3, "87a", 3) != 0 &&
        std::memcmp(bytes.data() + 3, "89a", 3) != 0) {
      request.reject("corrupt GIF: the version is neither 87a nor 89a");
    }
    width_ = read_u16_le(&bytes[6]);
    height_ = read_u16_le(&bytes[8]);
    at_ = kScreenEnd;
    read_palette(bytes[10]);
    find_frame();
  }

  const Frame& frame() const { return frame_; }
  size_t data_at() const { return at_; }  // where the LZW data begin
  int64_t width() const { return std::max(width_, frame_.left + frame_.width); }
  int64_t height() const { return std::max(height_, frame_.top + frame_.height); }

 private:
  uint8_t byte_at(size_t at) const {
    request_.need("GIF", uint64_t{at} + 1);
    return request_.bytes[at];
  }

  // Reads a palette if the flags announce one.
  void read_palette(uint8_t flags) {
    constexpr int kHasPalette = 0x80, kSizeBits = 7;
    if ((flags & kHasPalette) == 0) {
      return;
    }
    frame_.palette_at = at_;
    frame_.colours = size_t{2} << (flags & kSizeBits);
    at_ += 3 * frame_.colours;
    request_.need("GIF", at_);
  }

  void skip_blocks() {
    for (size_t length = byte_at(at_); length != 0; length = byte_at(at_)) {
      at_ += 1 + length;
      request_.check_time();
    }
    ++at_;
  }

  void find_frame() {
    constexpr uint8_t kExtension = 0x21, kImage = 0x2c, kEnd = 0x3b, kControl = 0xf9;
    for (;;) {
      const uint8_t kind = byte_at(at_++);
      if (kind == kImage) {
        return read_frame();
      }
      if (kind == kEnd) {
        request_.reject("GIF without a frame");
      }
      if (kind != kExtension) {
        request_.reject("corrupt GIF: got a block of kind ", int{kind}, " at byte ",
                        uint64_t{at_ - 1}, ", expected an extension or a frame");
      }
      if (byte_at(at_++) == kControl && byte_at(at_) >= 4) {
        request_.need("GIF", uint64_t{at_} + 5);
        const bool is_transparent = (request_.bytes[at_ + 1] & 1) != 0;
        frame_.transparent = is_transparent ? request_.bytes[at_ + 4] : kNoColour;
      }
      skip_blocks();
    }
  }

  void read_frame() {
    constexpr size_t kLength = 9;
    constexpr int kInterlaced = 0x40;
    request_.need("GIF", uint64_t{at_} + kLength);
    const uint8_t* p = &request_.bytes[at_];
    frame_.left = read_u16_le(p);
    frame_.top = read_u16_le(p + 2);
    frame_.width = read_u16_le(p + 4);
    frame_.height = read_u16_le(p + 6);
    frame_.interlaced = (p[8] & kInterlaced) != 0;
    at_ += kLength;
    read_palette(p[8]);
    if (frame_.width == 0 || frame_.height == 0) {
      request_.reject("GIF whose first frame is ", frame_.width, " x ", frame_.height,
                      " pixels, expected at least 1 x 1");
    }
    if (frame_.colours == 0) {
      request_.reject("GIF without a palette for its first frame");
    }
  }

  const DecodeRequest& request_;
  int64_t width_ = 0, height_ = 0;
  size_t at_ = 0;
  Frame frame_;
};

// Reads the codes of the frame: bits, lowest first, in blocks of up to 255 bytes.
class CodeReader {
 public:
  CodeReader(const DecodeRequest& request, size_t at) : request_(request), at_(at) {}

  int next(int bits) {
    if (!fill(bits)) {
      request_.need("GIF", uint64_t{at_} + 1);
      request_.reject("corrupt GIF: the data of the frame end before its last pixel");
    }
    const int code = static_cast<int>(value_ & ((1u << bits) - 1));
    value_ >>= bits;
    held_ -= bits;
    return code;
  }

  // Makes `bits` bits available; false if the blocks or the file end before.
  bool fill(int bits) {
    const auto bytes = request_.bytes;
    while (held_ < bits) {
      if (left_ == 0) {
        if (at_ >= bytes.size() || bytes[at_] == 0) {
          return false;
        }
        left_ = bytes[at_++];
        request_.check_time();
      }
      if (at_ >= bytes.size()) {
        return false;
      }
      value_ |= uint32_t{bytes[at_++]} << held_;
      held_ += 8;
      --left_;
    }
    return true;
  }

 private:
  const DecodeRequest& request_;
  size_t at_;
  size_t left_ = 0;  // bytes left in the block
  uint32_t value_ = 0;
  int held_ = 0;
};

// Decodes the pixels of the frame: palette indices in file order.
class LzwDecoder {
 public:
  LzwDecoder(const DecodeRequest& request, size_t at) : request_(request), codes_(request, at + 1) {
    request.need("GIF", uint64_t{at} + 1);
    first_bits_ = request.bytes[at];
    constexpr int kMaxFirstBits = 8;
    if (first_bits_ < 1 || first_bits_ > kMaxFirstBits) {
      request.reject("corrupt GIF: codes of ", first_bits_, " bits, expected 1 to 8");
    }
    clear_ = 1 << first_bits_;
    restart();
  }

  std::vector<uint8_t> read(size_t count) {
    std::vector<uint8_t> out;
    out.reserve(count);
    while (out.size() < count) {
      const int code = codes_.next(bits_);
      if (code == clear_) {
        restart();
      } else if (code == clear_ + 1) {
        request_.reject("corrupt GIF: the data of the frame end before its last pixel");
      } else {
        append(code, out, count);
      }
    }
    expect_end();
    return out;
  }

 private:
  void restart() {
    bits_ = first_bits_ + 1;
    next_ = clear_ + 2;
    previous_ = -1;
  }

  // Checks that no pixels follow the last one: they would mean that the frame's size is wrong.
  void expect_end() {
    while (codes_.fill(bits_)) {
      const int code = codes_.next(bits_);
      if (code == clear_ + 1) {
        return;
      }
      if (code != clear_) {
        reject_rest();
      }
      restart();
    }
  }

  [[noreturn]] void reject_rest() const {
    request_.reject("corrupt GIF: the data of the frame have more pixels than its size");
  }

  // Appends the string of a code. Adds the previous string plus its first pixel to the table.
  void append(int code, std::vector<uint8_t>& out, size_t count) {
    const bool is_new = code == next_;
    if (code > next_ || (previous_ < 0 && code >= clear_) ||
        (is_new && next_ >= static_cast<int>(kCodes))) {
      request_.reject("corrupt GIF: code ", code, " where at most ", next_, " is possible");
    }
    size_t length = 0;
    int at = is_new ? previous_ : code;
    if (is_new) {
      string_[length++] = 0;  // the first pixel of the previous string, set below
    }
    for (; at >= clear_; at = prefix_[static_cast<size_t>(at)]) {
      string_[length++] = last_[static_cast<size_t>(at)];
    }
    const auto first = static_cast<uint8_t>(at);
    string_[length++] = first;
    if (is_new) {
      string_[0] = first;
    }
    if (length > count - out.size()) {
      reject_rest();
    }
    for (size_t i = length; i > 0; --i) {
      out.push_back(string_[i - 1]);
    }
    if (previous_ >= 0 && next_ < static_cast<int>(kCodes)) {
      prefix_[static_cast<size_t>(next_)] = static_cast<uint16_t>(previous_);
      last_[static_cast<size_t>(next_)] = first;
      ++next_;
      if (next_ == 1 << bits_ && bits_ < kMaxCodeBits) {
        ++bits_;
      }
    }
    previous_ = code;
  }

  const DecodeRequest& request_;
  CodeReader codes_;
  int first_bits_ = 0, bits_ = 0, clear_ = 0, next_ = 0, previous_ = -1;
  std::array<uint16_t, kCodes> prefix_{};
  std::array<uint8_t, kCodes> last_{};
  std::array<uint8_t, kCodes + 1> string_{};  // in reverse order
};

// The row of the frame that row i of an interlaced file belongs to.
int64_t row_of(int64_t i, int64_t height) {
  constexpr struct { int64_t first, step; } kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  for (const auto& pass : kPasses) {
    const int64_t rows =
        height > pass.first ? (height - pass.first + pass.step - 1) / pass.step : 0;
    if (i < rows) {
      return pass.first + i * pass.step;
    }
    i -= rows;
  }
  return height - 1;
}

}  // namespace

Image decode_gif(const DecodeRequest& request) {
  const GifHeader header(request);
  check_size(request, header.height(), header.width());
  const Frame& frame = header.frame();
  const std::vector<uint8_t> indices =
      LzwDecoder(request, header.data_at())
          .read(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height));
  Image image = make_image(static_cast<int>(header.height()), static_cast<int>(header.width()),
                           request.channels(3));
  for (int64_t i = 0; i < frame.height; ++i) {
    const int64_t y = frame.top + (frame.interlaced ? row_of(i, frame.height) : i);
    uint8_t* to = image.row(static_cast<int>(y)) + frame.left * image.channels;
    for (int64_t x = 0; x < frame.width; ++x, to += image.channels) {
      const size_t index = indices[static_cast<size_t>(i * frame.width + x)];
      if (index >= frame.colours) {
        request.reject("corrupt GIF: a pixel has colour ", uint64_t{index}, ", the palette has ",
                       uint64_t{frame.colours}, " colours");
      }
      const uint8_t* colour = &request.bytes[frame.palette_at + 3 * index];
      const bool is_transparent = static_cast<int>(index) == frame.transparent;
      store_pixel(
          to, image.channels,
          {colour[0], colour[1], colour[2], static_cast<uint8_t>(is_transparent ? 0 : 255)});
    }
  }
  return image;
}

}  // namespace binade::data::internal
