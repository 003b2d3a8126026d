// binade inspect: lists the contents of a model file or a checkpoint, and checks that it is whole.
#include "commands.h"

#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/checkpoint_manifest_internal.h>

#include <algorithm>
#include <cstdio>

namespace binade::tool {
namespace {

void print_line(const std::string& line) { std::printf("%s\n", printable(line).c_str()); }

// Texts of a foreign file may be long, so they are cut; texts written by Binade are short.
std::string shortened(const std::string& value) {
  constexpr size_t kShown = 100;
  const std::string whole = value.substr(0, utf8_prefix(value.substr(0, kShown)));
  return whole.size() == value.size() ? value : text(whole, "... (", value.size(), " bytes)");
}

void print_tensors(const SafetensorsFile& file) {
  size_t width = 4;
  for (const TensorEntry& entry : file.entries()) {
    width = std::max(width, std::min<size_t>(entry.name.size(), 60));
  }
  uint64_t bytes = 0, elements = 0;
  for (const TensorEntry& entry : file.entries()) {
    const std::string padding(width - std::min(width, entry.name.size()), ' ');
    print_line(text("  ", entry.name, padding, "  ", entry.type, "  ", entry.sizes, "  ",
                    entry.bytes(), " bytes"));
    bytes += entry.bytes();
    elements += static_cast<uint64_t>(element_count(entry.sizes));
  }
  print_line(
      text("  ", file.entries().size(), " tensors, ", elements, " elements, ", bytes, " bytes"));
}

// Returns the number of damaged tensors.
int verify_tensors(const SafetensorsFile& file) {
  int damaged = 0;
  for (const TensorEntry& entry : file.entries()) {
    try {
      file.verify(entry);
    } catch (const Error& error) {
      std::fprintf(stderr, "binade: error: %s\n", error.what());
      ++damaged;
    }
  }
  return damaged;
}

int inspect_file(const std::string& path, bool verify) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  print_line(path + ":");
  print_tensors(file);
  for (const auto& [key, value] : file.metadata()) {
    if (key != kSafetensorsChecksums) {
      print_line(text("  metadata ", key, " = ", shortened(value)));
    }
  }
  for (const std::string& warning : file.warnings()) {
    print_line("  warning: " + warning);
  }
  if (!file.has_checksums()) {
    print_line("  checksums: none; only the form of the header is verified");
    return 0;
  }
  if (!verify) {
    print_line(
        "  checksums: CRC-32C of the header (right) and of each tensor (not read; --verify reads "
        "them)");
    return 0;
  }
  const int damaged = verify_tensors(file);
  print_line(damaged == 0 ? std::string("  checksums: all right")
                          : text("  checksums: ", damaged, " of ", file.entries().size(),
                                 " tensors are damaged"));
  return damaged == 0 ? 0 : 1;
}

// Shows a directory with a manifest.
int inspect_checkpoint(const std::string& path, bool verify) {
  const train::Manifest manifest = train::read_manifest(path, file_system());
  print_line(text(path, ": checkpoint of step ", manifest.step, ", format ", manifest.format));
  for (const auto& [key, value] : manifest.fields) {
    print_line(text("  ", key, " = ", shortened(value)));
  }
  int result = 0;
  for (const auto& [name, record] : manifest.files) {
    const std::string file = path + "/" + name;
    try {
      if (verify) {
        train::verify_file(file, record, file_system());
      }
      print_line(
          text("  ", name, ": ", record.bytes, " bytes, checksum ", verify ? "right" : "not read"));
      result = std::max(result, inspect_file(file, false));
    } catch (const Error& error) {
      std::fprintf(stderr, "binade: error: %s\n", error.what());
      result = 1;
    }
  }
  return result;
}

}  // namespace

int run(const InspectOptions& a) {
  const std::string kind = file_kind(a.path);
  if (kind != "a directory") {
    return inspect_file(a.path, a.verify);
  }
  if (file_kind(a.path + "/" + train::kManifestName) == "a regular file") {
    return inspect_checkpoint(a.path, a.verify);
  }
  // The argument may be a run or its folder of checkpoints.
  const std::string folder =
      file_kind(a.path + "/checkpoint") == "a directory" ? a.path + "/checkpoint" : a.path;
  int result = 0, found = 0;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::string path = folder + "/" + entry.name;
    if (!entry.is_directory || file_kind(path + "/" + train::kManifestName) != "a regular file") {
      continue;
    }
    ++found;
    try {
      result = std::max(result, inspect_checkpoint(path, a.verify));
    } catch (const Error& error) {
      std::fprintf(stderr, "binade: error: %s\n", error.what());
      result = 1;
    }
  }
  check(found > 0, a.path,
        ": got no checkpoint in it, expected a safetensors file, a checkpoint or a "
        "run directory");
  return result;
}

}  // namespace binade::tool
