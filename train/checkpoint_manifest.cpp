#include <binade/core/io/crc32c.h>
#include <binade/kernels/base/error.h>
#include <binade/train/checkpoint_manifest_internal.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <vector>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "binade checkpoint 1";
constexpr uint64_t kManifestMaxBytes = uint64_t{16} << 20;

uint32_t checksum_of(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::string hexadecimal(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(value));
  return text;
}

uint32_t from_hexadecimal(const std::string& path, const std::string& text) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value, 16);
  check(status == std::errc() && stop == end && text == hexadecimal(value), path,
        ": a checksum is not eight hexadecimal digits");
  return value;
}

Manifest from_json(const std::string& path, const json& root) {
  Manifest manifest;
  manifest.step = root.at("step").get<int64_t>();
  check(manifest.step >= 0, path, ": got step ", manifest.step, ", expected none below 0");
  manifest.fields = root.at("fields").get<std::map<std::string, std::string>>();
  for (const auto& [name, record] : root.at("files").items()) {
    check_file_name(path, name);
    check(record.at("bytes").is_number_unsigned(), path, ": the size of ", name, " is not a size");
    manifest.files[name] = {record.at("bytes").get<uint64_t>(),
                            from_hexadecimal(path, record.at("crc32c").get<std::string>())};
  }
  return manifest;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  try {
    json files = json::object();
    for (const auto& [name, record] : manifest.files) {
      files[name] = {{"bytes", record.bytes}, {"crc32c", hexadecimal(record.crc32c)}};
    }
    json root = {{"format", kFormat},
                 {"step", manifest.step},
                 {"fields", json(manifest.fields)},
                 {"files", std::move(files)}};
    root["checksum"] = hexadecimal(checksum_of(root.dump()));
    return root.dump(1) + "\n";
  } catch (const json::exception& error) {
    fail("checkpoint: cannot write the manifest, its names and fields must be UTF-8: ",
         error.what());
  }
}

Manifest parse_manifest(const std::string& path, std::string_view text) {
  constexpr int kDepth = 3;  // root, files, a file
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    check(depth <= kDepth, path, ": nested deeper than a manifest is");
    return true;
  };
  try {
    const json root = json::parse(text.begin(), text.end(), limit_depth);
    check(root.is_object() && root.value("format", "") == kFormat, path,
          ": not a manifest of a checkpoint (expected format \"", kFormat, "\")");
    Manifest manifest = from_json(path, root);
    // Rendering it again gives the same text, checksum included, unless a byte was changed.
    check(manifest_text(manifest) == text, path,
          ": the manifest is damaged, its checksum is wrong");
    return manifest;
  } catch (const json::exception& error) {
    fail(path, ": not a manifest of a checkpoint: ", error.what());
  }
}

void check_file_name(const std::string& path, const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." && name != kManifestName &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  check(plain, path, ": got the file name \"", name, "\", expected a plain name other than ",
        kManifestName);
}

Manifest read_manifest(const std::string& directory, FileSystem& files) {
  const std::string path = directory + "/" + kManifestName;
  const std::vector<std::byte> bytes = read_file(path, kManifestMaxBytes, files);
  return parse_manifest(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void verify_file(const std::string& path, const FileRecord& expected, FileSystem& files) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const InputFile file(path, files);
  check(file.size() == expected.bytes, path, ": the file has ", file.size(), " bytes, expected ",
        expected.bytes);
  std::vector<std::byte> piece(std::min(kPiece, file.size()));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(std::min(kPiece, file.size() - at));
    file.read(at, piece);
    crc = crc32c(piece, crc);
  }
  check(crc == expected.crc32c, path, ": the checksum is wrong, the file is damaged");
}

}  // namespace binade::train
