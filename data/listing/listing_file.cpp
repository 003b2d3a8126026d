#include <binade/data/listing/listing_file_internal.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>

namespace binade::data {
namespace {

constexpr std::string_view kMagic = "binade-listing ", kVersion = "1 crc32c ";
constexpr size_t kLineBytes = kMagic.size() + kVersion.size() + 16 + 1 + 8 + 1;
constexpr uint64_t kMaxTable = uint64_t{64} << 20;

std::string first_line(std::string_view table) {
  const auto bytes = static_cast<uint64_t>(table.size());
  return text(kMagic, kVersion, hexadecimal(static_cast<uint32_t>(bytes >> 32)),
              hexadecimal(static_cast<uint32_t>(bytes)), " ", hexadecimal(crc_of(table)), "\n");
}

std::string table_of(std::span<const ListedFolder> folders) {
  std::string table;
  for (const ListedFolder& folder : folders) {
    const DirectoryStamp& stamp = folder.stamp;
    table += text("folder ", stamp.node, " ", stamp.bytes, " ", stamp.links, " ", stamp.modified,
                  " ", stamp.changed, " ", folder.entries, " ", folder.bytes, " ",
                  hexadecimal(folder.crc), " ", escaped_name(folder.path), "\n");
  }
  return table;
}

template <class T>
bool take_number(std::string_view& line, T& value, int base = 10) {
  return parse_number(take_until(line, ' '), base, value);
}

bool parse_folder(std::string_view line, ListedFolder& folder) {
  DirectoryStamp& stamp = folder.stamp;
  return take_until(line, ' ') == "folder" && take_number(line, stamp.node) &&
         take_number(line, stamp.bytes) && take_number(line, stamp.links) &&
         take_number(line, stamp.modified) && take_number(line, stamp.changed) &&
         take_number(line, folder.entries) && take_number(line, folder.bytes) &&
         take_number(line, folder.crc, 16) && unescape_name(line, folder.path) &&
         folder.path.starts_with('/');
}

char kind_letter(const DirectoryEntry& entry) {
  return entry.is_directory ? 'd' : entry.is_file ? 'f' : 'o';
}

// True if this can be the name of an entry.
bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

std::string listing_head(std::span<const ListedFolder> folders) {
  const std::string table = table_of(folders);
  check(table.size() <= kMaxTable, "the table of ", folders.size(), " folders has ", table.size(),
        " bytes, expected at most ", kMaxTable);
  return first_line(table) + table;
}

std::string pack_entries(std::span<const DirectoryEntry> entries) {
  size_t bytes = 0;
  for (const DirectoryEntry& entry : entries) {
    bytes += entry.name.size() + 2;
  }
  std::string block;
  block.reserve(bytes);
  for (const DirectoryEntry& entry : entries) {
    block += kind_letter(entry);
    block += entry.name;
    block += '\0';
  }
  return block;
}

std::vector<DirectoryEntry> unpack_entries(const std::string& file, const ListedFolder& folder,
                                           std::string_view block) {
  const auto fail_at = [&](const char* what) {
    fail(file, ": the listing cache was altered: the entries of ", folder.path, what);
  };
  if (static_cast<uint64_t>(std::count(block.begin(), block.end(), '\0')) != folder.entries) {
    fail_at(" are not as many as its table says");
  }
  std::vector<DirectoryEntry> entries;
  entries.reserve(folder.entries);
  std::string_view before;
  while (!block.empty()) {
    const bool ended = block.find('\0') != std::string_view::npos;
    const std::string_view entry = take_until(block, '\0');
    const char kind = entry.empty() ? '\0' : entry[0];
    const std::string_view name = entry.substr(std::min<size_t>(1, entry.size()));
    if (!ended || (kind != 'd' && kind != 'f' && kind != 'o') || !is_name(name)) {
      fail_at(" have one that no folder can have");
    }
    if (name <= before) {
      fail_at(" are not sorted");
    }
    before = name;
    entries.push_back(
        {.name = std::string(name), .is_directory = kind == 'd', .is_file = kind == 'f'});
  }
  return entries;
}

ListingFile::ListingFile(const std::string& path, FileSystem& files) : file_(path, files) {
  const std::string table = read_table();
  std::string_view rest = table;
  uint64_t end = kLineBytes + table.size();
  while (!rest.empty()) {
    ListedFolder folder{.offset = end};
    const std::string_view line = take_until(rest, '\n');
    check(parse_folder(line, folder), path, ": got '", line.substr(0, 80),
          "', expected the line of a folder in a listing cache");
    check(folders_.empty() || folders_.back().path < folder.path, path,
          ": the listing cache was altered: ", folder.path, " is not sorted by path");
    check(folder.bytes <= kMaxListingBlock && folder.bytes <= file_.size() - end &&
              folder.entries <= folder.bytes / 3,
          path, ": the listing cache is cut off or was altered: it has no room for ",
          folder.entries, " entries of ", folder.path);
    end += folder.bytes;
    folders_.push_back(std::move(folder));
  }
  check(end == file_.size(), path, ": the listing cache has ", file_.size(), " bytes, expected ",
        end, " as its table says");
  check(table_of(folders_) == table, path,
        ": the listing cache was altered: its table has another form");
}

std::string ListingFile::read(uint64_t offset, uint64_t bytes) const {
  std::string all(bytes, '\0');
  file_.read(offset, std::as_writable_bytes(std::span(all.data(), all.size())));
  return all;
}

std::string ListingFile::read_table() {
  const std::string& path = file_.path();
  const std::string line = read(0, std::min<uint64_t>(kLineBytes, file_.size()));
  const size_t shown = std::min(kMagic.size(), line.size());
  if (line.substr(0, shown) != kMagic.substr(0, shown)) {
    throw ForeignFile(printable(
        text(path, ": is no listing cache and stays as it is; give the path of a new file")));
  }
  check(line.size() == kLineBytes, path, ": the listing cache is cut off, it has ", line.size(),
        " bytes");
  std::string_view rest = std::string_view(line).substr(kMagic.size());
  check(rest.starts_with(kVersion), path, ": the listing cache is of another version");
  rest.remove_prefix(kVersion.size());
  uint64_t bytes = 0;
  check(take_number(rest, bytes, 16) && bytes <= kMaxTable && bytes <= file_.size() - kLineBytes,
        path, ": the listing cache is cut off or was altered: it has no room for its table");
  std::string table = read(kLineBytes, bytes);
  check(first_line(table) == line && (table.empty() || table.back() == '\n'), path,
        ": the listing cache was altered: its table does not fit its first line");
  return table;
}

std::string ListingFile::block(const ListedFolder& folder) const {
  std::string all = read(folder.offset, folder.bytes);
  check(crc_of(all) == folder.crc, path(), ": the listing cache was altered: the entries of ",
        folder.path, " do not fit their checksum");
  return all;
}

}  // namespace binade::data
