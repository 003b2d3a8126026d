// CRC-32C (Castagnoli), the checksum of files: it detects every error burst of up to 32 bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace binade {

// The checksum of `bytes`, continued from `crc`: crc32c(b, crc32c(a)) is the CRC of a and then b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The same with tables: for machines without the CRC instruction, and for tests.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace binade
