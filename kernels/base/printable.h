// Makes text from outside (names of files, classes and tensors, contents of files) safe to print:
// on a terminal it moves no cursor, and in a log it begins no line. Error, FileError and warn()
// apply it to their text, so code that throws or warns need not.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace binade {

// Length of the well-formed UTF-8 character at the front of `text`, 0 if there is none (RFC 3629:
// no overlong forms, no surrogates, at most U+10FFFF). REQUIRES: `text` is not empty.
size_t utf8_character(std::string_view text);

// `text` with the bytes of these characters written as \xNN in hexadecimal: control characters (C0
// with ESC and newline, DEL, C1), characters that end a line or reverse the direction of text
// (U+2028 to U+202E, U+2066 to U+2069), and bytes that are not UTF-8. A backslash stays as it is.
std::string printable(std::string_view text);

}  // namespace binade
