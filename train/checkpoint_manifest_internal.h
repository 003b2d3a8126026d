// manifest.json of a checkpoint (internal to train): the list of its files, with checksums of the
// files and of the manifest itself. A checkpoint without a valid manifest counts as absent.
#pragma once
#include <binade/core/io/file_system.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace binade::train {

inline constexpr const char* kManifestName = "manifest.json";

struct FileRecord {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

struct Manifest {
  int64_t step = 0;
  std::map<std::string, std::string> fields;
  std::map<std::string, FileRecord> files;
};

// Throws Error if a text is not UTF-8.
std::string manifest_text(const Manifest& manifest);

// Throws Error, beginning with `path`, for anything that manifest_text would not have written.
Manifest parse_manifest(const std::string& path, std::string_view text);

// Throws unless `name` is a plain file name that a checkpoint may have.
void check_file_name(const std::string& path, const std::string& name);

// The manifest of a checkpoint's directory.
Manifest read_manifest(const std::string& directory, FileSystem& files);

// Throws unless the file has the size and checksum of its record.
void verify_file(const std::string& path, const FileRecord& expected, FileSystem& files);

}  // namespace binade::train
