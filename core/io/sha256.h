// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), and two functions for keys: random bytes of the
// system, and a comparison that takes the same time wherever two digests differ.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace binade {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // The digest of all bytes added. Nothing can be added after it.
  Sha256Digest finish();

 private:
  void add_block(const std::byte* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  uint64_t bytes_ = 0;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);

inline std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The time of this depends on the sizes only, not on where a and b differ.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

// Fills `bytes` with random bytes of the system, which nobody can guess. Throws Error if the system
// has none.
void fill_random(std::span<std::byte> bytes);

}  // namespace binade
