#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/data/checksums.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "binade-checksums 1 crc32c";
constexpr uint64_t kMaxManifest = uint64_t(4) << 30;
constexpr int kMaxDepth = 64;

// Absolute and without "." and "..", but with links as they are. No "/" at the end.
std::string absolute_path(const std::string& path) {
  std::error_code error;
  std::string out = fs::absolute(path, error).lexically_normal().native();
  check(!error, path, ": cannot make the path absolute: ", error.message());
  while (out.size() > 1 && out.back() == '/') {
    out.pop_back();
  }
  return out;
}

bool is_manifest_name(std::string_view name) {
  return name == kChecksumFile || (name.starts_with(text(kChecksumFile, ".")) &&
                                   name.ends_with(".tmp"));  // of a killed `binade checksum`
}

// Collects the names of the files below a folder.
class Walk {
 public:
  explicit Walk(std::string root) : root_(std::move(root)) { enter("", 0); }
  std::vector<std::string> names;

 private:
  void enter(const std::string& below, int depth) {  // `below` ends with "/" or is empty
    const std::string folder = root_ + "/" + below;
    struct stat status;
    check(depth <= kMaxDepth, folder, ": folders deeper than ", kMaxDepth);
    check(::stat(folder.c_str(), &status) == 0, folder, ": no such folder");
    const auto identity = std::pair(status.st_dev, status.st_ino);
    check(inside_.insert(identity).second, folder, ": a link leads back to a folder above it");
    for (const DirectoryEntry& entry : list_directory(folder)) {
      const std::string name = below + entry.name;
      const std::string kind = entry.is_file        ? "a regular file"
                               : entry.is_directory ? "a directory"
                                                    : file_kind(root_ + "/" + name);
      if (kind == "a directory") {
        enter(name + "/", depth + 1);
      } else {
        check(kind == "a regular file", root_, "/", name, ": got ", kind,
              ", expected files and folders only; remove it");
        if (!is_manifest_name(entry.name)) {
          names.push_back(name);
        }
      }
    }
    inside_.erase(identity);
  }

  std::string root_;
  std::set<std::pair<dev_t, ino_t>> inside_;  // this folder and those above
};

Checksum checksum_of_file(const std::string& path) {
  constexpr uint64_t kBlock = uint64_t(1) << 20;
  const InputFile file(path);
  Checksum sum{.size = file.size()};
  std::vector<std::byte> block(std::min(kBlock, file.size()));
  for (uint64_t at = 0; at < sum.size; at += block.size()) {
    const auto part = std::span(block).first(std::min<uint64_t>(block.size(), sum.size - at));
    file.read(at, part);
    sum.crc = crc32c(part, sum.crc);
  }
  return sum;
}

bool parse_entry(std::string_view line, ChecksumEntry& entry) {
  const std::string_view crc = take_until(line, ' '), size = take_until(line, ' ');
  return crc.size() == 8 && parse_number(crc, 16, entry.sum.crc) &&
         parse_number(size, 10, entry.sum.size) && unescape_name(line, entry.name) &&
         !entry.name.empty() && entry.name.front() != '/';
}

std::vector<ChecksumEntry> parse_manifest(const std::string& path, std::string_view all) {
  constexpr const char* kAdvice = "; write it anew with: binade checksum DIR --update";
  std::string_view rest = all;
  check(take_until(rest, '\n') == kHeader, path, ": got another first line than '", kHeader, "'",
        kAdvice);
  std::vector<ChecksumEntry> entries;
  for (size_t number = 2; !rest.empty(); ++number) {
    const std::string_view before = all.substr(0, all.size() - rest.size());
    const std::string_view line = take_until(rest, '\n');
    if (line.starts_with("end ")) {
      const std::string expected =
          text("end ", static_cast<uint64_t>(entries.size()), " ", hexadecimal(crc_of(before)));
      check(line == expected && rest.empty() && all.ends_with('\n'), path,
            ": the manifest was altered: line ", number, " does not fit the lines before", kAdvice);
      return entries;
    }
    ChecksumEntry entry;
    check(parse_entry(line, entry), path, ": got '", line.substr(0, 80), "' in line ", number,
          ", expected a checksum, a size and a name", kAdvice);
    check(entries.empty() || entries.back().name < entry.name, path, ": line ", number,
          " is not sorted by name", kAdvice);
    entries.push_back(std::move(entry));
  }
  fail(path, ": the manifest is cut off, it has no line 'end'", kAdvice);
}

}  // namespace

std::string ChecksumManifest::path() const { return directory_ + "/" + kChecksumFile; }

ChecksumManifest ChecksumManifest::compute(const std::string& directory) {
  ChecksumManifest out;
  out.directory_ = absolute_path(directory);
  for (std::string& name : Walk(out.directory_).names) {
    out.entries_.push_back({std::move(name), {}});
  }
  std::sort(out.entries_.begin(), out.entries_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  kernels::parallel_for(static_cast<int64_t>(out.entries_.size()), 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      ChecksumEntry& entry = out.entries_[static_cast<size_t>(i)];
      entry.sum = checksum_of_file(out.directory_ + "/" + entry.name);
    }
  });
  return out;
}

ChecksumManifest ChecksumManifest::read(const std::string& directory) {
  const std::string path = absolute_path(directory) + "/" + kChecksumFile;
  const std::vector<std::byte> bytes = binade::read_file(path, kMaxManifest);
  return parse(directory, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

ChecksumManifest ChecksumManifest::parse(const std::string& directory, std::string_view text) {
  ChecksumManifest out;
  out.directory_ = absolute_path(directory);
  out.entries_ = parse_manifest(out.path(), text);
  return out;
}

std::optional<ChecksumManifest> ChecksumManifest::find(const std::string& directory) {
  for (std::string folder = absolute_path(directory);; folder = parent_directory(folder)) {
    struct stat status;
    if (::lstat((folder + "/" + kChecksumFile).c_str(), &status) == 0) {
      return read(folder);
    }
    if (folder == "/") {
      return std::nullopt;
    }
  }
}

void ChecksumManifest::write() const { write_file_durably(path(), to_text()); }

std::string ChecksumManifest::to_text() const {
  std::string all = text(kHeader, "\n");
  for (const ChecksumEntry& entry : entries_) {
    all +=
        text(hexadecimal(entry.sum.crc), " ", entry.sum.size, " ", escaped_name(entry.name), "\n");
  }
  all += text("end ", static_cast<uint64_t>(entries_.size()), " ", hexadecimal(crc_of(all)), "\n");
  return all;
}

std::string ChecksumManifest::name_of(const std::string& path) const {
  const std::string absolute = absolute_path(path);
  const std::string front = directory_ == "/" ? "/" : directory_ + "/";
  return absolute.starts_with(front) ? absolute.substr(front.size()) : "";
}

const ChecksumEntry* ChecksumManifest::find_file(const std::string& path) const {
  const std::string name = name_of(path);
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, const std::string& n) { return entry.name < n; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

ChecksumDifference compare(const ChecksumManifest& expected, const ChecksumManifest& found) {
  ChecksumDifference out;
  auto a = expected.entries().begin();
  auto b = found.entries().begin();
  const auto a_end = expected.entries().end();
  const auto b_end = found.entries().end();
  while (a != a_end || b != b_end) {
    if (b == b_end || (a != a_end && a->name < b->name)) {
      out.missing.push_back((a++)->name);
    } else if (a == a_end || b->name < a->name) {
      out.extra.push_back((b++)->name);
    } else {
      if (a->sum != b->sum) {
        out.changed.push_back(a->name);
      }
      ++a, ++b;
    }
  }
  return out;
}

std::optional<Checksum> expected_checksum(const std::string& path, Checksums mode) {
  if (mode == Checksums::ignore) {
    return std::nullopt;
  }
  const auto manifest = ChecksumManifest::find(parent_directory(path));
  check(manifest || mode != Checksums::require, path, ": no ", kChecksumFile,
        " in its folder or above; write one with: binade checksum DIR");
  if (!manifest) {
    return std::nullopt;
  }
  const ChecksumEntry* entry = manifest->find_file(path);
  check(entry != nullptr, path, ": the file is not listed in ", manifest->path(),
        "; if it belongs there: binade checksum ", manifest->directory(), " --update");
  return entry->sum;
}

void verify_checksum(const std::string& path, const Checksum& expected, const Checksum& found) {
  check(expected.size == found.size, path, ": the file has ", found.size, " bytes, ", kChecksumFile,
        " says ", expected.size, ": it was changed or cut off; restore it");
  check(expected.crc == found.crc, path, ": the file has the checksum ", hexadecimal(found.crc),
        ", ", kChecksumFile, " says ", hexadecimal(expected.crc),
        ": its bytes were changed; restore it");
}

void verify_checksum(const std::string& path, const Checksum& expected,
                     std::span<const uint8_t> bytes) {
  verify_checksum(path, expected, {bytes.size(), crc32c(std::as_bytes(bytes))});
}

}  // namespace binade::data
