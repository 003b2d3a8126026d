#include <binade/core/io/json_text.h>
#include <binade/kernels/base/printable.h>

#include <cstdint>
#include <cstring>

namespace binade {

void append_utf8(std::string& out, uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

size_t utf8_prefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word = kHighBits;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
    }
    if ((word & kHighBits) == 0) {  // eight ASCII characters
      at += sizeof word;
      continue;
    }
    const size_t length = utf8_character(text.substr(at));
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return at;
}

std::string json_quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<uint8_t>(text.front());
    const size_t character = utf8_character(text);
    const bool control = byte < 0x20 || byte == 0x7f;
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text.front();
    } else if (control || character == 0) {
      out += control ? "\\u00" : "\\\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += text.substr(0, character);
    }
    text.remove_prefix(character > 0 ? character : 1);
  }
  return out + '"';
}

std::string json_quoted_short(std::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) {
    return json_quoted(text);
  }
  return json_quoted(text.substr(0, utf8_prefix(text.substr(0, kShown)))) + "...";
}

bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

}  // namespace binade
