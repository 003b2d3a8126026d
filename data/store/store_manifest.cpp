// The manifest of a store.
#include <binade/data/store/manifest_text_internal.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>

namespace binade::data {
namespace {

constexpr std::string_view kFirstLine = "binade-store 1 crc32c";

// The lines of a manifest, one after another.
class Lines {
 public:
  Lines(const std::string& path, std::string_view all) : path_(path), all_(all), rest_(all) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view before() const { return all_.substr(0, all_.size() - rest_.size()); }
  std::string_view next() {
    ++number_;
    check(!rest_.empty(), path_, ": the manifest is cut off, it has no line 'end'");
    return take_until(rest_, '\n');
  }
  // The rest of a line that begins with `word`.
  std::string_view next(std::string_view word) {
    std::string_view line = next();
    if (take_until(line, ' ') != word) {
      fail_line(word);
    }
    return line;
  }
  template <class T>
  T number(std::string_view text, T low, T high) const {
    T value{};
    if (!parse_number(text, 10, value) || value < low || value > high) {
      fail(path_, ": got '", text.substr(0, 40), "' in line ", number_, ", expected a number from ",
           low, " to ", high);
    }
    return value;
  }
  [[noreturn]] void fail_line(std::string_view expected) const {
    fail(path_, ": got another line ", number_, " than one that begins with '", expected,
         "'; the manifest was altered");
  }

 private:
  const std::string& path_;
  std::string_view all_, rest_;
  int64_t number_ = 0;
};

ShardEntry parse_shard(const std::string& path, Lines& lines, std::string_view line) {
  constexpr uint64_t kMost = uint64_t{1} << 46;
  ShardEntry shard;
  shard.bytes = lines.number<uint64_t>(take_until(line, ' '), 1, kMost);
  shard.samples =
      lines.number<int64_t>(take_until(line, ' '), 1, static_cast<int64_t>(kMost / sizeof(Record)));
  check(line.size() == 8 && parse_number(line, 16, shard.index_crc), path, ": got the checksum '",
        line.substr(0, 20), "', expected 8 hexadecimal digits");
  const uint64_t index = static_cast<uint64_t>(shard.samples) * sizeof(Record);
  check(shard.bytes >= sizeof(kShardMagic) + index && shard.bytes % kSampleAlignment == 0, path,
        ": a shard of ", shard.bytes, " bytes cannot have ", shard.samples, " samples");
  return shard;
}

}  // namespace

std::string shard_name(size_t number) {
  std::string digits = text(static_cast<uint64_t>(number));
  constexpr size_t kDigits = 5;
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits + ".bin";
}

int64_t StoreManifest::samples() const {
  int64_t all = 0;
  for (const ShardEntry& shard : shards) {
    all += shard.samples;
  }
  return all;
}

std::string to_text(const StoreManifest& manifest) {
  std::string all = text(kFirstLine, "\nchannels ", manifest.channels, "\nencoded ",
                         manifest.encoded ? 1 : 0, "\nclasses ", manifest.classes, "\n");
  for (const std::string& name : manifest.class_names) {
    all += text("class ", escaped_name(name), "\n");
  }
  for (const ShardEntry& shard : manifest.shards) {
    all += text("shard ", shard.bytes, " ", shard.samples, " ", hexadecimal(shard.index_crc), "\n");
  }
  all += text("end ", manifest.samples(), " ", hexadecimal(crc_of(all)), "\n");
  return all;
}

StoreManifest parse_store_manifest(const std::string& path, std::string_view all) {
  StoreManifest manifest;
  Lines lines(path, all);
  check(lines.next() == kFirstLine, path, ": got another first line than '", kFirstLine,
        "'; is it the manifest of a store, and of this version?");
  manifest.channels = lines.number(lines.next("channels"), -1, 4);
  manifest.encoded = lines.number(lines.next("encoded"), 0, 1) == 1;
  manifest.classes = lines.number<int64_t>(lines.next("classes"), 0, kMaxStoreClasses);
  std::string_view before, line;
  while (true) {
    before = lines.before();
    line = lines.next();
    const std::string_view word = take_until(line, ' ');
    if (word == "class" && manifest.shards.empty()) {
      manifest.class_names.emplace_back();
      check(unescape_name(line, manifest.class_names.back()), path, ": got '", line.substr(0, 80),
            "', expected the escaped name of a class");
    } else if (word == "shard") {
      manifest.shards.push_back(parse_shard(path, lines, line));
    } else if (word == "end") {
      break;
    } else {
      lines.fail_line("class', 'shard' or 'end");
    }
  }
  check(line == text(manifest.samples(), " ", hexadecimal(crc_of(before))) && lines.at_end() &&
            all.ends_with('\n'),
        path, ": the manifest was altered: its last line does not fit the lines before");
  check(manifest.class_names.empty() || std::ssize(manifest.class_names) == manifest.classes, path,
        ": got ", manifest.class_names.size(), " names for ", manifest.classes, " classes");
  return manifest;
}

}  // namespace binade::data
