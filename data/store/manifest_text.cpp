// The text of manifests.
#include <binade/core/io/crc32c.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <span>

namespace binade::data {

std::string hexadecimal(uint32_t value) {
  std::string digits(8, '0');
  for (size_t i = 0; i < 8; ++i) {
    digits[7 - i] = "0123456789abcdef"[value >> (4 * i) & 15];
  }
  return digits;
}

std::string escaped_name(const std::string& name) {
  std::string out;
  for (size_t at = 0; at < name.size();) {
    const size_t backslash = std::min(name.find('\\', at), name.size());
    out += printable(std::string_view(name).substr(at, backslash - at));
    out += backslash < name.size() ? "\\x5c" : "";
    at = backslash + 1;
  }
  return out;
}

bool unescape_name(std::string_view text, std::string& name) {
  name.clear();
  for (size_t at = 0; at < text.size();) {
    uint8_t byte = 0;
    if (text[at] != '\\') {
      name += text[at++];
    } else if (text.size() - at >= 4 && text[at + 1] == 'x' &&
               parse_number(text.substr(at + 2, 2), 16, byte)) {
      name += static_cast<char>(byte);
      at += 4;
    } else {
      return false;
    }
  }
  return escaped_name(name) == text;
}

std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace binade::data
