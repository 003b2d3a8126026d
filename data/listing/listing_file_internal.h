// The file of a listing cache: the entries of folders, and the stamp of each folder when it was
// listed. Internal to data.
//
//   binade-listing 1 crc32c BYTES CRC     56 bytes; of the table, 16 and 8 hexadecimal digits
//   folder NODE SIZE LINKS MODIFIED CHANGED ENTRIES BYTES CRC PATH     the table, sorted by path
//   blocks of BYTES, one per folder in the order of the table
//
// A block has for each entry, sorted by name: 'd' for a directory, 'f' for a regular file or 'o'
// for anything else, the name, and a zero byte. Nothing follows the last block.
#pragma once
#include <binade/core/io/file_system.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

struct ListedFolder {
  std::string path = {};  // absolute
  DirectoryStamp stamp = {};
  uint64_t entries = 0;
  uint64_t bytes = 0;   // of the block
  uint32_t crc = 0;     // CRC-32C of the block
  uint64_t offset = 0;  // of the block in the file; read, not written
};

constexpr uint64_t kMaxListingBlock = uint64_t{256} << 20;

// The file is no listing cache, so it is not ours to replace.
class ForeignFile : public Error {
 public:
  using Error::Error;
};

// Everything before the blocks. REQUIRES: the folders are sorted by path.
std::string listing_head(std::span<const ListedFolder> folders);
// REQUIRES: the entries are sorted by name, and no name comes twice.
std::string pack_entries(std::span<const DirectoryEntry> entries);
// The entries of a block with the right checksum. `file` is for errors. Throws Error.
std::vector<DirectoryEntry> unpack_entries(const std::string& file, const ListedFolder& folder,
                                           std::string_view block);

class ListingFile {
 public:
  // Reads the table. Throws FileError if the file cannot be read, ForeignFile, or Error if it is
  // damaged or of another version. Nothing is allocated that the size of the file does not allow.
  explicit ListingFile(const std::string& path, FileSystem& files = file_system());

  const std::string& path() const { return file_.path(); }
  const std::vector<ListedFolder>& folders() const { return folders_; }
  // Compares the block with its checksum. Throws Error.
  std::string block(const ListedFolder& folder) const;

 private:
  std::string read(uint64_t offset, uint64_t bytes) const;
  std::string read_table();

  InputFile file_;
  std::vector<ListedFolder> folders_;
};

}  // namespace binade::data
