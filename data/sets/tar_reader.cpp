// Headers of tar files.
#include <binade/data/sets/tar_reader_internal.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace binade::data {
namespace {

constexpr uint64_t kTarBlock = 512, kMaxExtended = 1 << 20;
constexpr size_t kMaxName = 4096;

// A field up to its first zero byte.
std::string_view field_of(std::span<const std::byte> block, size_t at, size_t bytes) {
  const std::string_view field = text_of(block.subspan(at, bytes));
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces, or with the first bit set a big-endian number. False if neither.
bool parse_octal(std::span<const std::byte> block, size_t at, size_t bytes, uint64_t& value) {
  value = 0;
  const auto first = std::to_integer<uint8_t>(block[at]);
  if (first >= 0x80) {
    if (first != 0x80) {
      return false;  // negative, or beyond 64 bits
    }
    for (size_t i = 1; i < bytes; ++i) {
      if (value >> 56 != 0) {
        return false;
      }
      value = value << 8 | std::to_integer<uint8_t>(block[at + i]);
    }
    return true;
  }
  std::string_view digits = field_of(block, at, bytes);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  return !digits.empty() && parse_number(digits, 8, value);
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

struct TarReader::Header {
  std::string name;
  uint64_t size = 0;
  char type = 0;
};

std::span<const std::byte> TarReader::take(uint64_t bytes) {
  check(bytes <= file_.size() - at_, path_, ": at byte ", at_, ": a member of ", bytes,
        " bytes does not fit; the file was cut off");
  const auto part = file_.subspan(at_, bytes);
  // The padding of the last member may be missing.
  at_ = std::min<uint64_t>(at_ + bytes + (kTarBlock - bytes % kTarBlock) % kTarBlock, file_.size());
  return part;
}

// Data after the end could be another archive, whose members would be missed.
void TarReader::check_end() const {
  check(all_zero(file_.subspan(at_)), path_, ": at byte ", at_,
        ": data after the end of the archive; are these two archives in one file?");
}

// False at the end.
bool TarReader::read_header(Header& header) {
  if (at_ == file_.size()) {
    return false;
  }
  check(file_.size() - at_ >= kTarBlock, path_, ": at byte ", at_,
        ": a header does not fit; the file was cut off");
  const uint64_t begin = at_;
  const auto block = take(kTarBlock);
  if (all_zero(block)) {
    check_end();
    return false;
  }
  constexpr size_t kNameAt = 0, kSizeAt = 124, kSumAt = 148, kSumEnd = 156, kTypeAt = 156,
                   kMagicAt = 257, kPrefixAt = 345;
  uint64_t expected = 0, sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    sum += i >= kSumAt && i < kSumEnd ? ' ' : std::to_integer<uint8_t>(block[i]);
  }
  check(parse_octal(block, kSumAt, kSumEnd - kSumAt, expected) && sum == expected, path_,
        ": at byte ", begin,
        ": a header has a wrong checksum; is this a tar file, and not compressed?");
  check(parse_octal(block, kSizeAt, 12, header.size), path_, ": at byte ", begin,
        ": a member has no valid size");
  header.type = text_of(block)[kTypeAt];
  header.name = field_of(block, kNameAt, 100);
  const bool is_posix = text_of(block).substr(kMagicAt, 6) == std::string_view("ustar\0", 6);
  const std::string_view prefix = field_of(block, kPrefixAt, 155);
  if (is_posix && !prefix.empty()) {
    header.name = std::string(prefix) + "/" + header.name;
  }
  return true;
}

// Records "LENGTH KEY=VALUE\n".
void TarReader::read_pax(std::span<const std::byte> records) {
  for (std::string_view rest = text_of(records); !rest.empty();) {
    size_t length = 0;
    const size_t space = rest.find(' ');
    const bool ok = space < rest.size() && parse_number(rest.substr(0, space), 10, length) &&
                    length > space + 1 && length <= rest.size() && rest[length - 1] == '\n';
    check(ok, path_, ": before byte ", at_, ": an extended header is not valid");
    std::string_view value = rest.substr(space + 1, length - space - 2);
    const std::string_view key = take_until(value, '=');
    rest.remove_prefix(length);
    check(!key.starts_with("GNU.sparse"), path_, ": before byte ", at_,
          ": a sparse file, which is not supported");
    if (key == "path") {
      check(value.size() <= kMaxName, path_, ": before byte ", at_, ": a name of ", value.size(),
            " bytes, expected at most ", kMaxName);
      long_name_ = value;
    } else if (key == "size") {
      has_pax_size_ = parse_number(value, 10, pax_size_);
      check(has_pax_size_, path_, ": before byte ", at_, ": a member has no valid size");
    }
  }
}

// True if the header belongs to the next member.
bool TarReader::take_extended(const Header& header, TarMember& member) {
  const bool is_name = header.type == 'L', is_pax = header.type == 'x';
  if (!is_name && !is_pax && header.type != 'g' && header.type != 'K') {
    return false;
  }
  check(header.size <= kMaxExtended, path_, ": at byte ", member.begin, ": an extended header of ",
        header.size, " bytes, expected at most ", kMaxExtended);
  const auto bytes = take(header.size);
  if (is_name) {
    long_name_ = field_of(bytes, 0, bytes.size());
    check(long_name_.size() <= kMaxName, path_, ": at byte ", member.begin, ": a name of ",
          long_name_.size(), " bytes, expected at most ", kMaxName);
  } else if (is_pax) {
    read_pax(bytes);
  }
  return true;
}

bool TarReader::next(TarMember& member) {
  for (bool inside = false;;) {
    if (!inside) {
      member.begin = at_;
      long_name_.clear();
      has_pax_size_ = false;
    }
    Header header;
    if (!read_header(header)) {
      check(!inside, path_, ": ends after an extended header; the file was cut off");
      return false;
    }
    if (take_extended(header, member)) {
      inside = true;
      continue;
    }
    inside = false;
    check(header.type != 'S', path_, ": at byte ", member.begin,
          ": a sparse file, which is not supported");
    const bool is_file = header.type == '0' || header.type == '\0' || header.type == '7';
    const bool has_data = is_file || header.type < '1' || header.type > '6';
    const auto bytes = take(has_data ? (has_pax_size_ ? pax_size_ : header.size) : 0);
    if (is_file) {
      member.name = long_name_.empty() ? std::move(header.name) : long_name_;
      member.bytes = bytes;
      return true;
    }
    left_out_ += header.type == '5' ? 0 : 1;
  }
}

}  // namespace binade::data
