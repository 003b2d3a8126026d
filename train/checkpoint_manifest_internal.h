// manifest.json of a checkpoint (internal to train): the list of its files, with checksums of the
// files and of the manifest itself. A checkpoint without a valid manifest counts as damaged.
//
// In every format, also in later ones, "format" is "binade checkpoint N", "features" lists what a
// reader must understand, and "checksum" is the CRC-32C of the rest as compact JSON with sorted
// names. So every version can tell a damaged manifest from one that a newer version wrote.
#pragma once
#include <binade/core/io/file_system.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace binade::train {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kListName = "files.json";  // of a checkpoint being written
inline constexpr int64_t kManifestFormat = 2;           // format 1 had no "features"
// Features that this version knows. delayed-scales: files of SimulatedFormats::histories().
inline constexpr const char* kDelayedScalesFeature = "delayed-scales";
inline constexpr int64_t kMaxStep = int64_t{1} << 53;

// An undamaged checkpoint, or list of files, that a newer version of Binade wrote.
class NewerCheckpoint : public Error {
 public:
  using Error::Error;
};

struct FileRecord {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

struct Manifest {
  int64_t step = 0;  // at most kMaxStep
  std::map<std::string, std::string> fields;
  std::map<std::string, FileRecord> files;
  std::set<std::string> features;
  int64_t format = kManifestFormat;
};

// Throws Error if a text is not UTF-8.
std::string manifest_text(const Manifest& manifest);

// Throws Error, beginning with `path`, for anything that manifest_text would not have written;
// NewerCheckpoint if a newer version would have.
Manifest parse_manifest(const std::string& path, std::string_view text);

// The text of files.json: the names of the files that a directory may have while a checkpoint is
// written to it.
std::string list_text(const std::set<std::string>& names);
// The names, also of a text that is cut off (then none). Throws Error for anything that list_text
// would not have written.
std::set<std::string> parse_list(const std::string& path, std::string_view text);

// Throws unless `name` is a plain file name that a checkpoint may have.
void check_file_name(const std::string& path, const std::string& name);

// The manifest, and the list of files, of a checkpoint's directory.
Manifest read_manifest(const std::string& directory, FileSystem& files);
std::set<std::string> read_list(const std::string& directory, FileSystem& files);

// Throws unless the file has the size and checksum of its record.
void verify_file(const std::string& path, const FileRecord& expected, FileSystem& files);

}  // namespace binade::train
