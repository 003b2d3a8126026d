#include <binade/kernels/base/printable.h>

#include <cstdint>

namespace binade {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// True if the well-formed character at the front of `text` shows as itself.
bool is_visible(std::string_view text, size_t length) {
  const uint8_t lead = byte_at(text, 0);
  if (length == 1) {
    return lead >= 0x20 && lead != 0x7f;
  }
  if (length == 2) {
    return lead != 0xc2 || byte_at(text, 1) >= 0xa0;  // C1 controls: U+0080 to U+009F
  }
  if (lead != 0xe2) {
    return true;
  }
  const uint8_t second = byte_at(text, 1), third = byte_at(text, 2);
  const bool line_or_direction = second == 0x80 && third >= 0xa8 && third <= 0xae;
  const bool isolate = second == 0x81 && third >= 0xa6 && third <= 0xa9;
  return !line_or_direction && !isolate;
}

}  // namespace

size_t utf8_character(std::string_view text) {
  const uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const uint8_t second = byte_at(text, 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool too_large = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t character = utf8_character(text);
    if (character > 0 && is_visible(text, character)) {
      out += text.substr(0, character);
      text.remove_prefix(character);
      continue;
    }
    for (size_t left = character > 0 ? character : 1; left > 0; --left) {
      const uint8_t byte = byte_at(text, 0);
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace binade
