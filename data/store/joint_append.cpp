#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/data/store/joint_append_internal.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "binade-append 1\n";
constexpr uint64_t kMaxBytes = 4096;

std::string with_end(const std::string& lines) {
  return text(lines, "end ", crc32c(std::as_bytes(std::span(lines.data(), lines.size()))), "\n");
}

// The lines between the first one and the last.
std::vector<std::string> parse(const std::string& path, const std::string& all) {
  const size_t end = all.rfind("end ");
  check(all.starts_with(kHead) && end != std::string::npos && with_end(all.substr(0, end)) == all,
        path,
        ": was altered or cut off; expected the names of manifests, as `binade pack --append` "
        "writes them; without this file each store is as its own manifest says");
  std::vector<std::string> names;
  for (size_t at = kHead.size(); at < end;) {
    const size_t stop = all.find('\n', at);
    names.push_back(all.substr(at, stop - at));
    at = stop + 1;
  }
  return names;
}

std::string path_of_append(const fs::path& folder) { return (folder / kJointAppend).native(); }

}  // namespace

void write_joint_append(const std::string& folder, const std::vector<std::string>& manifests) {
  std::string lines(kHead);
  for (const std::string& name : manifests) {
    lines += name + "\n";
  }
  write_file_durably(path_of_append(folder), with_end(lines));
}

void remove_joint_append(const std::string& folder) {
  const std::string path = path_of_append(folder);
  if (file_system().remove_file(path) != 0 && errno != ENOENT) {
    throw FileError(text(path, ": cannot be removed, although the append is complete"), errno);
  }
  sync_directory(folder);
}

std::string manifest_path(const std::string& store) {
  std::string own = store + "/" + kStoreManifest;
  std::error_code none;
  const fs::path place = fs::canonical(store, none);
  const std::string append = path_of_append(place.parent_path());
  if (none || file_kind(append) != "a regular file") {
    return own;
  }
  const std::vector<std::byte> bytes = binade::read_file(append, kMaxBytes);
  const std::string prefix = place.filename().native() + "/" + kStoreManifest + ".";
  for (const std::string& name :
       parse(append, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    const bool is_own = name.starts_with(prefix) && name.ends_with(".tmp") &&
                        name.find('/', place.filename().native().size() + 1) == std::string::npos;
    std::string waiting = store + name.substr(is_own ? place.filename().native().size() : 0);
    if (is_own && file_kind(waiting) == "a regular file") {
      return waiting;
    }
  }
  return own;
}

StoreManifest read_store_manifest(const std::string& store) {
  const auto read = [](const std::string& path) {
    const std::vector<std::byte> bytes = binade::read_file(path, kMaxManifestBytes);
    return parse_store_manifest(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  const std::string path = manifest_path(store), own = store + "/" + kStoreManifest;
  try {
    return read(path);
  } catch (const FileError& error) {
    if (error.code() != ENOENT || path == own) {
      throw;
    }
  }
  return read(own);  // it has got its name meanwhile
}

}  // namespace binade::data
