#include <binade/core/io/crc32c.h>
#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors_checksums_internal.h>

#include <charconv>

namespace binade {
namespace {

constexpr size_t kDigits = 8;
constexpr const char *kZeros = "00000000", *kFormat = "1";

std::string hex(uint32_t value) {
  char digits[kDigits];
  const auto [end, error] = std::to_chars(digits, digits + kDigits, value, 16);
  const auto count = static_cast<size_t>(end - digits);
  return std::string(kDigits - count, '0') + std::string(digits, count);
}

bool parse_hex(std::string_view digits, uint32_t& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return digits.size() == kDigits && error == std::errc() && stop == end && hex(value) == digits;
}

uint32_t crc_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

uint32_t crc_of(const TensorSource& source) {
  if (!source.produce) {
    return crc32c(source.bytes);
  }
  uint32_t crc = 0;
  source.produce([&](std::span<const std::byte> piece) { crc = crc32c(piece, crc); });
  return crc;
}

// Where the digits of the header's checksum begin, in the text that this file writes.
size_t place_in(std::string_view json) {
  const std::string key = json_quoted(kSafetensorsChecksums) + ":\"";
  const size_t found = json.find(key);
  return found == json.npos ? found : found + key.size();
}

[[noreturn]] void fail_damaged(const std::string& path, const std::string& what) {
  fail(path, ": ", what, ": the file is damaged; take another copy of it");
}

}  // namespace

void add_safetensors_checksums(std::span<const TensorSource> sources,
                               std::span<const uint32_t> order,
                               std::map<std::string, std::string>& metadata) {
  std::string sums = kZeros;
  for (const uint32_t i : order) {
    sums += hex(crc_of(sources[i]));
  }
  metadata[kSafetensorsChecksums] = sums;
  metadata[kSafetensorsFormat] = kFormat;
}

void sign_safetensors_header(std::string& json) {
  json.replace(place_in(json), kDigits, hex(crc_of(json)));
}

void take_safetensors_checksums(const std::string& path, std::string text,
                                SafetensorsHeader& header) {
  const auto sums = header.metadata.find(kSafetensorsChecksums);
  const auto format = header.metadata.find(kSafetensorsFormat);
  if (sums == header.metadata.end() && format == header.metadata.end()) {
    return;
  }
  const bool both = sums != header.metadata.end() && format != header.metadata.end();
  const std::string digits = both ? sums->second : "";
  const size_t place = place_in(text);
  uint32_t expected = 0;
  if (!both || place == text.npos || digits.size() < kDigits ||
      !parse_hex(digits.substr(0, kDigits), expected)) {
    fail_damaged(path, "the checksums of the header are not whole");
  }
  text.replace(place, kDigits, kZeros);
  if (const uint32_t got = crc_of(text); got != expected) {
    fail_damaged(
        path, binade::text("the header has the checksum ", hex(got), ", expected ", hex(expected)));
  }
  check(format->second == kFormat, path, ": the checksums have format ",
        json_quoted_short(format->second), ", this version of Binade reads ", kFormat,
        "; read the file with a newer one");
  check(digits.size() == kDigits * (1 + header.entries.size()), path, ": got ",
        digits.size() / kDigits, " checksums, expected ", 1 + header.entries.size(),
        ": one of the header and one of each tensor");
  for (size_t i = 0; i < header.entries.size(); ++i) {
    uint32_t sum = 0;
    check(parse_hex(digits.substr((i + 1) * kDigits, kDigits), sum), path, ": checksum ", i + 1,
          " is no number of 8 hexadecimal digits");
    header.entries[i].crc32c = sum;
  }
}

void check_safetensors_checksum(const std::string& path, const TensorEntry& entry, uint32_t got) {
  if (entry.crc32c && *entry.crc32c != got) {
    fail_damaged(path,
                 text("tensor ", json_quoted_short(entry.name), ": its bytes have the checksum ",
                      hex(got), ", expected ", hex(*entry.crc32c)));
  }
}

}  // namespace binade
