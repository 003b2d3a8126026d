#include <binade/core/io/crc32c.h>

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace binade {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // bit-reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  for (std::byte byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xff];
  }
  return ~crc;
}

#ifdef __SSE4_2__
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  uint64_t state = ~crc;
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  for (; left > 0; ++p, --left) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), static_cast<uint8_t>(*p));
  }
  return ~static_cast<uint32_t>(state);
}
#else
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  return crc32c_portable(bytes, crc);
}
#endif

}  // namespace binade
