// The text of manifests: numbers, escaped names and lines. Internal to data.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace binade::data {

std::string hexadecimal(uint32_t value);  // 8 digits

// Backslashes, and bytes that printable() replaces, become \xNN.
std::string escaped_name(const std::string& name);
// False if the text is not what escaped_name() gives.
bool unescape_name(std::string_view text, std::string& name);

// Splits off the text before the first `separator`, and the separator; all of it if there is none.
std::string_view take_until(std::string_view& rest, char separator);

uint32_t crc_of(std::string_view text);  // CRC-32C

// True if the whole text is a number of that base.
template <class T>
bool parse_number(std::string_view text, int base, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end;
}

}  // namespace binade::data
