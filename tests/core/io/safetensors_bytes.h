// Makes bytes of safetensors files for tests.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace binade::testing {

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Returns a file with this header and data.
inline std::string with_length(const std::string& header, const std::string& data = "") {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<char>(header.size() >> (8 * i));
  }
  return file + header + data;
}

}  // namespace binade::testing
