#include <binade/core/io/json_text.h>

#include <cstdint>
#include <cstring>

namespace binade {
namespace {

// Length of the well-formed UTF-8 character at the front of `text`, 0 if there is none (RFC 3629).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

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
    const size_t length = utf8_length(text.substr(at));
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
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
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
