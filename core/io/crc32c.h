// CRC-32C (Castagnoli), the checksum of files: it detects every error burst of up to 32 bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace binade {

// The checksum of `bytes`, continuing from `crc`: crc32c(b, crc32c(a)) is that of a followed by b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The same by table look-ups: for machines without the instruction, and for tests.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace binade
