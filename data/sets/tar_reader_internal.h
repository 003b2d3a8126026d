// TarReader: the members of a tar file in memory (POSIX ustar and pax, GNU long names). Internal to
// data. Nothing is copied but names; sizes are checked against the file before they are used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace binade::data {

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct TarMember {
  std::string name;
  std::span<const std::byte> bytes;
  uint64_t begin = 0;  // where its first header is
};

class TarReader {
 public:
  // `file` and `path`, which is for messages, must outlive the reader. Begins at the header at
  // `at`.
  TarReader(std::span<const std::byte> file, const std::string& path, uint64_t at = 0)
      : file_(file), path_(path), at_(at) {}

  // The next regular file; false at the end. Folders and links are left out and counted. Throws
  // Error that names file and byte for a wrong checksum of a header, a member that does not fit
  // into the file, a sparse file, a name of more than 4096 bytes, and data after the end.
  bool next(TarMember& member);
  int64_t left_out() const { return left_out_; }

 private:
  struct Header;
  bool read_header(Header& header);
  bool take_extended(const Header& header, TarMember& member);
  void read_pax(std::span<const std::byte> records);
  void check_end() const;
  std::span<const std::byte> take(uint64_t bytes);

  std::span<const std::byte> file_;
  const std::string& path_;
  uint64_t at_;
  std::string long_name_;  // of the next member
  bool has_pax_size_ = false;
  uint64_t pax_size_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace binade::data
