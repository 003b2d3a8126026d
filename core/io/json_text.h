// UTF-8 and quoting for JSON text and for messages that quote names from files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace binade {

// `text` as a JSON string with quotes, always valid JSON: UTF-8 outside ASCII is kept, a byte that
// is not UTF-8 becomes the four characters \xNN.
std::string json_quoted(std::string_view text);

// The same for messages: one line, at most about 100 bytes.
std::string json_quoted_short(std::string_view text);

// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

// The bytes before the first one that is not part of well-formed UTF-8.
size_t utf8_prefix(std::string_view text);

// Appends one code point, which must be at most U+10FFFF and no surrogate.
void append_utf8(std::string& out, uint32_t code);

}  // namespace binade
