// Checksums of the files of a data set: `binade checksum DIR` writes DIR/binade-checksums.txt, and
// every reader of files in DIR (image folder, idx, text lines) compares what it reads with it. So
// bit rot, a cut-off copy or an exchanged file is an error that names the file. A manifest protects
// against accidents, not against somebody who can also write the manifest.
//
// The file is text: "binade-checksums 1 crc32c"; then a line "CRC SIZE NAME" per file, sorted by
// name (bytewise): eight hexadecimal digits of its CRC-32C, its bytes, its name below DIR; then
// "end COUNT CRC", the CRC of all lines before. In names, a backslash and every byte that
// printable() replaces are written as \xNN.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

inline constexpr char kChecksumFile[] = "binade-checksums.txt";

// How a reader treats the manifest of its folder, or of the next folder above that has one.
enum class Checksums { if_present, require, ignore };

struct Checksum {
  uint64_t size = 0;
  uint32_t crc = 0;  // CRC-32C
  bool operator==(const Checksum&) const = default;
};

struct ChecksumEntry {
  std::string name;  // below the folder, with "/"
  Checksum sum;
  bool operator==(const ChecksumEntry&) const = default;
};

class ChecksumManifest {
 public:
  // Reads every regular file below `directory`, through links, but no manifest. Throws Error if
  // there is anything else than files and folders, or if links form a loop.
  static ChecksumManifest compute(const std::string& directory);
  // Throws Error if the manifest is missing, cut off or altered.
  static ChecksumManifest read(const std::string& directory);
  // The manifest of `directory` or of the next folder above that has one.
  static std::optional<ChecksumManifest> find(const std::string& directory);
  // The manifest of `directory` from the text of its file. Throws Error as read() does.
  static ChecksumManifest parse(const std::string& directory, std::string_view text);

  // Writes directory()/binade-checksums.txt, replacing it in one step.
  void write() const;
  std::string to_text() const;  // what write() writes

  const std::string& directory() const { return directory_; }
  std::string path() const;
  const std::vector<ChecksumEntry>& entries() const { return entries_; }  // sorted by name
  // The entry of a file given by its path; null if it is not listed.
  const ChecksumEntry* find_file(const std::string& path) const;
  // `path` below directory(), without links resolved; empty if it is not below.
  std::string name_of(const std::string& path) const;

 private:
  std::string directory_;
  std::vector<ChecksumEntry> entries_;
};

// Names that are in one of two manifests only, or whose content differs; each sorted.
struct ChecksumDifference {
  std::vector<std::string> missing, extra, changed;
  bool none() const { return missing.empty() && extra.empty() && changed.empty(); }
};
ChecksumDifference compare(const ChecksumManifest& expected, const ChecksumManifest& found);

// The manifest's entry for a file that is about to be read; none without a manifest. Throws if
// there is a manifest and the file is not listed, or if `mode` requires a manifest.
std::optional<Checksum> expected_checksum(const std::string& path,
                                          Checksums mode = Checksums::if_present);
// Throws Error naming the file unless it has this size and checksum.
void verify_checksum(const std::string& path, const Checksum& expected, const Checksum& found);
void verify_checksum(const std::string& path, const Checksum& expected,
                     std::span<const uint8_t> bytes);

}  // namespace binade::data
