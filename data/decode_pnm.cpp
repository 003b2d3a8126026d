// PNM: P5 (grey) and P6 (RGB), of 8 or 16 bits.
#include <binade/data/decode_internal.h>

#include <algorithm>
#include <cctype>

namespace binade::data::internal {
namespace {

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

}  // namespace

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
  request.need("PNM", at + values * value_bytes);
  Image image = make_image(static_cast<int>(height), static_cast<int>(width), channels);
  const auto top = static_cast<uint32_t>(largest);
  for (size_t i = 0; i < values; ++i) {
    if (i % (size_t(1) << 16) == 0) {
      request.check_time();
    }
    const uint32_t value = value_bytes == 1 ? bytes[at + i] : read_u16_be(&bytes[at + 2 * i]);
    image.pixels[i] = static_cast<uint8_t>((std::min(value, top) * 255 + top / 2) / top);
  }
  return convert_channels(std::move(image), request.channels(channels));
}

}  // namespace binade::data::internal
