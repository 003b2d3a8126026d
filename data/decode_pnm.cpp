// PNM: P1 (bits), P2 (grey) and P3 (RGB) as text; P4, P5 and P6 in binary; P7 (PAM, also with
// alpha). Samples have up to 16 bits; v becomes v * 255 / maxval, rounded. Netpbm's manual has the
// formats: pbm(5), pgm(5), ppm(5), pam(5). The first of several pictures is read. Other bytes after
// a picture are an error, because they mean that the size in the header is wrong.
#include <binade/data/decode_internal.h>

#include <algorithm>

namespace binade::data::internal {
namespace {

bool is_pnm_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }
bool is_pnm_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

struct PnmHeader {
  int64_t width = 0, height = 0, largest = 0;
  int samples = 0;         // per pixel in the file: 1 or 3, plus 1 for alpha
  bool is_text = false;    // samples are decimal numbers
  bool are_bits = false;   // P1 and P4: one bit per pixel
  bool one_black = false;  // P1 and P4: 1 is black
};

class PnmReader {
 public:
  explicit PnmReader(const DecodeRequest& request)
      : request_(request),
        kind_(request.bytes[1]),
        header_(kind_ == '7' ? read_pam() : read_pnm()) {
    check_size(request, header_.height, header_.width);
    if (header_.largest < 1 || header_.largest > 65535) {
      request.reject("corrupt PNM: largest value ", header_.largest, ", expected 1 to 65535");
    }
    const uint64_t row = row_samples();
    const auto rows = static_cast<uint64_t>(header_.height);
    if (header_.is_text) {  // each sample has a digit; except for bits, a separator
      request.need("PNM", at_ + (header_.are_bits ? row * rows : 2 * row * rows - 1));
    } else {
      request.need("PNM", at_ + rows * (header_.are_bits ? (row + 7) / 8 : row * sample_bytes()));
    }
  }

  Image read() {
    const PnmHeader& h = header_;
    const bool has_color = h.samples >= 3;
    Image image = make_image(static_cast<int>(h.height), static_cast<int>(h.width),
                             request_.channels(has_color ? 3 : 1));
    for (int y = 0; y < image.height; ++y) {
      request_.check_time();
      uint8_t* to = image.row(y);
      for (int x = 0; x < image.width; ++x, to += image.channels) {
        Pixel pixel{0, 0, 0, 255};
        pixel[0] = next_sample(x);
        pixel[1] = has_color ? next_sample(x) : pixel[0];
        pixel[2] = has_color ? next_sample(x) : pixel[0];
        if (h.samples % 2 == 0) {
          pixel[3] = next_sample(x);
        }
        store_pixel(to, image.channels, pixel);
      }
      at_ += !h.is_text && h.are_bits ? (row_samples() + 7) / 8 : 0;
    }
    check_end();
    return image;
  }

 private:
  uint64_t row_samples() const {
    return static_cast<uint64_t>(header_.width) * static_cast<uint64_t>(header_.samples);
  }
  uint64_t sample_bytes() const { return header_.largest > 255 ? 2 : 1; }
  bool at_end() const { return at_ >= request_.bytes.size(); }

  uint8_t next_sample(int x) {
    const PnmHeader& h = header_;
    int64_t value = 0;
    if (h.is_text) {
      value = h.are_bits ? text_bit() : number();
    } else if (h.are_bits) {
      value = request_.bytes[at_ + static_cast<size_t>(x) / 8] >> (7 - x % 8) & 1;
    } else {
      const uint8_t* p = &request_.bytes[at_];
      value = sample_bytes() == 1 ? *p : read_u16_be(p);
      at_ += sample_bytes();
    }
    if (value > h.largest) {
      request_.reject("corrupt PNM: a sample of ", value, ", above the largest value ", h.largest);
    }
    const int64_t scaled = (value * 255 + h.largest / 2) / h.largest;
    return static_cast<uint8_t>(h.one_black ? 255 - scaled : scaled);
  }

  bool at_space() const { return !at_end() && is_pnm_space(request_.bytes[at_]); }
  bool at_comment() const { return !at_end() && request_.bytes[at_] == '#'; }

  // Skips to the end of the line.
  void skip_comment() {
    while (!at_end() && request_.bytes[at_] != '\n' && request_.bytes[at_] != '\r') {
      ++at_;
    }
  }

  void skip_space() {
    while (at_space() || at_comment()) {
      if (at_comment()) {
        skip_comment();
      } else {
        ++at_;
      }
    }
  }

  // After P1, anything may follow white space.
  void check_end() {
    if (header_.is_text && header_.are_bits && at_space()) {
      return;
    }
    const size_t end = at_;
    if (!header_.is_text && looks_like_pnm(request_.bytes.subspan(end))) {
      return;
    }
    skip_space();
    if (!at_end()) {
      request_.reject("corrupt PNM: ", request_.bytes.size() - end,
                      " bytes after the pixels, not another picture");
    }
  }

  // Reads a decimal number after white space and comments.
  int64_t number() {
    skip_space();
    constexpr int64_t kMax = 1'000'000'000;
    int64_t value = 0;
    const size_t first = at_;
    for (; !at_end() && is_pnm_digit(request_.bytes[at_]); ++at_) {
      value = std::min(value * 10 + (request_.bytes[at_] - '0'), kMax);
    }
    if (at_ == first) {
      request_.reject(at_end() ? "truncated" : "corrupt", " PNM: no number at byte ", at_);
    }
    if (!at_end() && !at_space() && !at_comment()) {
      request_.reject("corrupt PNM: no white space at byte ", at_, ", after a number");
    }
    return value;
  }

  // Reads a digit of P1; digits need no space between them.
  int64_t text_bit() {
    skip_space();
    if (at_end() || (request_.bytes[at_] != '0' && request_.bytes[at_] != '1')) {
      request_.reject(at_end() ? "truncated" : "corrupt", " PNM: no 0 or 1 at byte ", at_);
    }
    return request_.bytes[at_++] - '0';
  }

  PnmHeader read_pnm() {
    PnmHeader h;
    h.is_text = kind_ <= '3';
    h.are_bits = h.one_black = kind_ == '1' || kind_ == '4';
    h.samples = kind_ == '3' || kind_ == '6' ? 3 : 1;
    h.width = number();
    h.height = number();
    h.largest = h.are_bits ? 1 : number();
    if (at_comment()) {
      skip_comment();  // the newline is the white space before the pixels
    }
    ++at_;
    return h;
  }

  // Reads lines with a word and a value, up to ENDHDR.
  PnmHeader read_pam() {
    PnmHeader h;
    std::string_view type;
    int64_t depth = 0;
    for (std::string_view word = line_word(); word != "ENDHDR"; word = line_word()) {
      if (word == "WIDTH") {
        h.width = number();
      } else if (word == "HEIGHT") {
        h.height = number();
      } else if (word == "MAXVAL") {
        h.largest = number();
      } else if (word == "DEPTH") {
        depth = number();
      } else if (word == "TUPLTYPE") {
        type = line_word();
      } else {
        request_.reject("corrupt PAM: a line begins with '", word,
                        "', expected WIDTH, HEIGHT, DEPTH, "
                        "MAXVAL, TUPLTYPE or ENDHDR");
      }
    }
    if (at_end() || request_.bytes[at_] != '\n') {
      request_.reject(at_end() ? "truncated" : "corrupt", " PAM: no new line after ENDHDR");
    }
    ++at_;
    h.samples = static_cast<int>(std::min<int64_t>(depth, 5));
    constexpr std::string_view kTypes[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    constexpr std::string_view kBits[] = {"", "BLACKANDWHITE", "BLACKANDWHITE_ALPHA"};
    const bool good_depth = depth >= 1 && depth <= 4;
    if (!good_depth ||
        !(type.empty() || type == kTypes[depth] || (depth <= 2 && type == kBits[depth]))) {
      request_.reject("PAM of ", depth, " samples a pixel and the type '", type,
                      "', expected grey or RGB, with or without alpha");
    }
    return h;
  }

  // Reads the next word after white space and comments; PAM's own words have at most 19 letters.
  std::string_view line_word() {
    skip_space();
    const size_t first = at_;
    while (!at_end() && at_ - first < 32 &&
           ((request_.bytes[at_] >= 'A' && request_.bytes[at_] <= 'Z') ||
            request_.bytes[at_] == '_')) {
      ++at_;
    }
    if (at_ == first) {
      request_.reject(at_end() ? "truncated" : "corrupt", " PAM: no word at byte ", at_);
    }
    return {reinterpret_cast<const char*>(&request_.bytes[first]), at_ - first};
  }

  const DecodeRequest& request_;
  const uint8_t kind_;
  size_t at_ = 2;
  const PnmHeader header_;
};

}  // namespace

bool looks_like_pnm(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (is_pnm_space(bytes[2]) || bytes[2] == '#');
}

Image decode_pnm(const DecodeRequest& request) { return PnmReader(request).read(); }

}  // namespace binade::data::internal
