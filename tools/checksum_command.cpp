// binade checksum: writes and verifies the checksum manifest of a data folder.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/data/checksums.h>
#include <binade/kernels/base/printable.h>

#include <cstdio>

namespace binade::tool {
namespace {

using data::ChecksumManifest;

void list(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) {
    std::printf("%s: %s\n", what, printable(names[i]).c_str());
  }
  if (names.size() > kShown) {
    std::printf("%s: %zu more\n", what, names.size() - kShown);
  }
}

void list(const data::ChecksumDifference& difference) {
  list("changed", difference.changed);
  list("missing", difference.missing);
  list("not listed", difference.extra);
}

void summarise(const char* what, const ChecksumManifest& manifest) {
  uint64_t bytes = 0;
  for (const data::ChecksumEntry& entry : manifest.entries()) {
    bytes += entry.sum.size;
  }
  std::printf("%s %s: %zu files, %llu bytes\n", what, printable(manifest.path()).c_str(),
              manifest.entries().size(), static_cast<unsigned long long>(bytes));
}

int verify(const std::string& folder) {
  const ChecksumManifest expected = ChecksumManifest::read(folder);
  const auto difference = compare(expected, ChecksumManifest::compute(folder));
  list(difference);
  if (difference.none()) {
    summarise("verified", expected);
    return 0;
  }
  std::fprintf(stderr,
               "binade: error: checksum: %zu files changed, %zu missing, %zu not listed in %s; "
               "restore them, or accept the folder as it is with --update\n",
               difference.changed.size(), difference.missing.size(), difference.extra.size(),
               printable(expected.path()).c_str());
  return 1;
}

// Also replaces a manifest that is unreadable.
int update(const std::string& folder) {
  const ChecksumManifest now = ChecksumManifest::compute(folder);
  if (file_kind(now.path()) == "a regular file") {
    try {
      list(compare(ChecksumManifest::read(folder), now));
    } catch (const Error& error) {
      std::fprintf(stderr, "binade: warning: %s\n", error.what());
    }
  }
  now.write();
  summarise("wrote", now);
  return 0;
}

}  // namespace

int run(const ChecksumOptions& o) {
  const bool exists = file_kind(o.folder + "/" + data::kChecksumFile) == "a regular file";
  return o.update || (!exists && !o.verify) ? update(o.folder) : verify(o.folder);
}

}  // namespace binade::tool
