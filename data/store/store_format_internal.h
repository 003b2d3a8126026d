// The files of a packed store. Internal to data; docs/data.md describes the format for users.
//
// A store is a folder with the manifest binade-store.txt and shards 00000.bin, 00001.bin, ...
// A shard is 16 bytes (kShardMagic, version), then the samples, each at a multiple of 8, then one
// Record of 32 bytes per sample. All numbers are little-endian. The manifest has the size and
// number of samples of every shard and the CRC-32C of its records; a record has the CRC-32C of its
// sample. So every byte that a reader uses is covered by a checksum.
//
// The manifest is text: "binade-store 1 crc32c"; "channels N" (-1: not known); "encoded 0" or 1;
// "classes N"; no or N lines "class NAME"; per shard "shard BYTES SAMPLES CRC"; then "end SAMPLES
// CRC", where CRC is that of all lines before. Names are escaped
// (data/store/manifest_text_internal.h).
#pragma once
#include <binade/data/sample.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

inline constexpr char kStoreManifest[] = "binade-store.txt";
// A file that pack() writes beside the manifest. It marks a folder that a killed process left.
inline constexpr char kPackMarker[] = "binade-pack.txt";
inline constexpr std::array<char, 16> kShardMagic = {'B', 'I', 'N', 'A', 'D', 'E', 'S', 'H',
                                                     1,   0,   0,   0,   0,   0,   0,   0};
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
inline constexpr int64_t kMaxStoreClasses = int64_t{1} << 24;
inline constexpr uint64_t kMaxSampleBytes = (uint64_t{1} << 32) - 1;
inline constexpr uint64_t kSampleAlignment = 8;

struct Record {
  uint64_t offset = 0;  // of the sample within the shard
  uint64_t id = 0;      // Dataset::id(): a hash of the sample's bytes
  int64_t label = kNoLabel;
  uint32_t bytes = 0;
  uint32_t crc = 0;
};
static_assert(sizeof(Record) == 32);

struct ShardEntry {
  uint64_t bytes = 0;
  int64_t samples = 0;
  uint32_t index_crc = 0;

  uint64_t index_offset() const { return bytes - static_cast<uint64_t>(samples) * sizeof(Record); }
};

struct StoreManifest {
  int channels = kUnknownChannels;
  bool encoded = false;  // some images are kept as JPEG, PNG, ...: get() decodes them
  int64_t classes = 0;
  std::vector<std::string> class_names = {};  // none, or one per class
  std::vector<ShardEntry> shards = {};

  int64_t samples() const;
};
std::string to_text(const StoreManifest& manifest);
// Throws Error that begins with `path` unless the text is exactly what to_text() gives.
StoreManifest parse_store_manifest(const std::string& path, std::string_view text);
std::string shard_name(size_t number);  // "00000.bin"

// A sample as bytes. `origin` is for messages. If `encoded` is not empty, this whole JPEG, PNG, ...
// file is kept instead of sample.image. The integers of a tensor are stored in as few bytes as its
// values need. Throws Error for samples of 4 GiB and more.
std::string encode_sample(const Sample& sample, std::string_view origin,
                          std::span<const uint8_t> encoded = {});

// The parts of a sample in memory that the view does not own.
struct SampleView {
  struct Picture {
    int height = 0, width = 0, channels = 0;
    std::span<const std::byte> pixels;
  };
  std::string_view origin;
  Picture image = {};                       // raw pixels
  std::span<const std::byte> encoded = {};  // or a file
  std::span<const std::byte> rest = {};     // values, fields and masks
};
// Throws Error (without a path) unless sizes and bytes fit. Nothing is allocated.
SampleView parse_sample(std::span<const std::byte> bytes);
// Adds values, fields and masks to the sample, reusing its memory.
void read_rest(std::span<const std::byte> rest, Sample& sample);

}  // namespace binade::data
