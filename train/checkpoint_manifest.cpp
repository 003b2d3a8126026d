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

constexpr std::string_view kFormat = "binade checkpoint ";  // then a number
constexpr const char* kListFormat = "binade checkpoint files 1";
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

Manifest from_json(const std::string& path, const json& root, int64_t format) {
  Manifest manifest;
  manifest.format = format;
  check(root.at("step").is_number_integer(), path, ": the step is not a whole number");
  manifest.step = root.at("step").get<int64_t>();
  check(manifest.step >= 0 && manifest.step <= kMaxStep, path, ": got step ", manifest.step,
        ", expected 0 to ", kMaxStep);
  manifest.fields = root.at("fields").get<std::map<std::string, std::string>>();
  if (format >= 2) {
    manifest.features = root.at("features").get<std::set<std::string>>();
  }
  for (const auto& [name, record] : root.at("files").items()) {
    check_file_name(path, name);
    check(record.at("bytes").is_number_unsigned(), path, ": the size of ", name, " is not a size");
    manifest.files[name] = {record.at("bytes").get<uint64_t>(),
                            from_hexadecimal(path, record.at("crc32c").get<std::string>())};
  }
  return manifest;
}

json parse_json(const std::string& path, std::string_view text) {
  constexpr int kDepth = 8;  // three here; a newer format may have more
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    check(depth <= kDepth, path, ": nested deeper than a manifest is");
    return true;
  };
  return json::parse(text.begin(), text.end(), limit_depth);
}

// The number N of "binade checkpoint N", 0 if there is none.
int64_t format_of(const json& root) {
  const std::string text = root.is_object() ? root.value("format", "") : "";
  int64_t number = 0;
  if (text.starts_with(kFormat)) {
    const char* end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data() + kFormat.size(), end, number);
    number = status == std::errc() && stop == end ? number : 0;
  }
  return std::max<int64_t>(number, 0);
}

// Throws if a newer version of Binade sealed this text.
void check_not_newer(const std::string& path, json root, int64_t format) {
  const std::string checksum = root.value("checksum", "");
  root.erase("checksum");
  if (checksum != hexadecimal(checksum_of(root.dump()))) {
    return;  // damaged
  }
  constexpr const char* kAdvice = "; use that Binade, or a new run directory; nothing was changed";
  if (format > kManifestFormat) {
    throw NewerCheckpoint(text(path, ": written by a newer Binade (format ", format,
                               "; this one reads ", kManifestFormat, ")", kAdvice));
  }
  for (const json& feature : root.value("features", json::array())) {
    if (feature == kDelayedScalesFeature) {
      continue;
    }
    throw NewerCheckpoint(text(path, ": written by a newer Binade (feature ", feature.dump(),
                               ", which this one does not know)", kAdvice));
  }
}

std::string sealed(json root) {
  root["checksum"] = hexadecimal(checksum_of(root.dump()));
  return root.dump(1) + "\n";
}

std::string small_file(const std::string& path, FileSystem& files) {
  const std::vector<std::byte> bytes = read_file(path, kManifestMaxBytes, files);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  try {
    json files = json::object();
    for (const auto& [name, record] : manifest.files) {
      files[name] = {{"bytes", record.bytes}, {"crc32c", hexadecimal(record.crc32c)}};
    }
    json root = {{"format", text(kFormat, manifest.format)},
                 {"step", manifest.step},
                 {"fields", json(manifest.fields)},
                 {"files", std::move(files)}};
    if (manifest.format >= 2) {
      root["features"] = json(manifest.features);
    }
    return sealed(std::move(root));
  } catch (const json::exception& error) {
    fail("checkpoint: cannot write the manifest, its names and fields must be UTF-8: ",
         error.what());
  }
}

Manifest parse_manifest(const std::string& path, std::string_view text) {
  try {
    const json root = parse_json(path, text);
    const int64_t format = format_of(root);
    check(format > 0, path, ": not a manifest of a checkpoint (expected format \"", kFormat,
          kManifestFormat, "\")");
    check_not_newer(path, root, format);
    Manifest manifest = from_json(path, root, format);
    // Rendering it again gives the same text, checksum included, unless a byte was changed.
    check(manifest_text(manifest) == text, path,
          ": the manifest is damaged, its checksum is wrong");
    return manifest;
  } catch (const json::exception& error) {
    fail(path, ": not a manifest of a checkpoint: ", error.what());
  }
}

std::string list_text(const std::set<std::string>& names) {
  return sealed({{"files", json(names)}, {"format", kListFormat}});
}

std::set<std::string> parse_list(const std::string& path, std::string_view text) {
  const std::string start = R"({
 "checksum": ")";
  const std::string_view begin = std::string_view(start).substr(0, text.size());
  check(text.starts_with(begin), path, ": not a list of the files of a checkpoint");
  const json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded()) {
    return {};  // cut off
  }
  try {
    auto names = root.at("files").get<std::set<std::string>>();
    check(list_text(names) == text, path, ": the list of files is damaged, its checksum is wrong");
    return names;
  } catch (const json::exception& error) {
    fail(path, ": not a list of the files of a checkpoint: ", error.what());
  }
}

void check_file_name(const std::string& path, const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." && name != kManifestName &&
                     name != kListName &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  check(plain, path, ": got the file name \"", name, "\", expected a plain name other than ",
        kManifestName, " and ", kListName);
}

Manifest read_manifest(const std::string& directory, FileSystem& files) {
  const std::string path = directory + "/" + kManifestName;
  return parse_manifest(path, small_file(path, files));
}

std::set<std::string> read_list(const std::string& directory, FileSystem& files) {
  const std::string path = directory + "/" + kListName;
  return parse_list(path, small_file(path, files));
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
