// The safetensors format: 8 bytes header length (little endian), a JSON header, then the tensors'
// bytes, row-major, without holes. Reading is strict: every rule of the format is checked before
// any data is read. It reads into owned memory, never through a memory map: a file that shrinks is
// an error, not a signal. Errors are one line and begin with the path. The limits are below.
//
// Files may have checksums, which other readers ignore: "binade.crc32c" in __metadata__ is a list
// of CRC-32C values of 8 hexadecimal digits each, of the header (with zeros for its own digits) and
// of each tensor in the order of the data. "binade.format" is the version of this rule. With both,
// open() verifies the header and read() each tensor: any flipped bit is an error.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/kernels/base/dims.h>
#include <binade/kernels/base/dtype.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

inline constexpr uint64_t kSafetensorsMaxHeader = 100'000'000;  // bytes
inline constexpr size_t kSafetensorsMaxTensors = 1'000'000;
inline constexpr size_t kSafetensorsMaxName = 1024;  // bytes
// Keys of __metadata__.
inline constexpr const char* kSafetensorsChecksums = "binade.crc32c";
inline constexpr const char* kSafetensorsFormat = "binade.format";

// One tensor of a file. `type` is the format's name ("F32", "F8_E4M3", ...; static storage).
// `dtype` is empty if Binade has no such element type: such a tensor can only be read as bytes.
struct TensorEntry {
  std::string name;
  std::string_view type;
  std::optional<DType> dtype;
  Dims sizes;
  uint64_t begin = 0, end = 0;          // byte range within the data section
  std::optional<uint32_t> crc32c = {};  // of the bytes, if the file has checksums

  uint64_t bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of the data
  std::map<std::string, std::string> metadata;
  std::vector<std::string> warnings;  // fields unknown to the format
};

// Parses and validates a header that describes `data_bytes` bytes of data. `path` is for messages.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view header,
                                           uint64_t data_bytes);

// An open file whose header was validated. Tensors are read on demand.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::string& path, FileSystem& files = file_system());

  const std::string& path() const { return file_.path(); }
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<std::string>& warnings() const { return header_.warnings; }
  bool has_checksums() const { return metadata().contains(kSafetensorsChecksums); }

  const TensorEntry* find(std::string_view name) const;  // null if absent
  const TensorEntry& at(std::string_view name) const;    // an error if absent
  // The dtype of the tensor; throws an error that names the type if Binade does not have it.
  DType dtype_of(const TensorEntry& entry) const;

  // Reads the tensor, row-major, and verifies its checksum if there is one. `bytes` must be exactly
  // entry.bytes() long. Bytes of a BOOL tensor must be 0 or 1.
  void read(const TensorEntry& entry, std::span<std::byte> bytes) const;
  std::vector<std::byte> read(const TensorEntry& entry) const;
  // Reads the tensor in small pieces and throws if its checksum is wrong.
  void verify(const TensorEntry& entry) const;

 private:
  SafetensorsFile(InputFile file, SafetensorsHeader header, uint64_t data_offset);

  InputFile file_;
  SafetensorsHeader header_;
  std::vector<uint32_t> by_name_;  // indices of entries
  uint64_t data_offset_;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// One tensor to write: row-major bytes in memory or, if `produce` is set, bytes that it passes to
// the sink in any number of pieces when it is this tensor's turn: for strided tensors and tensors
// on a GPU.
struct TensorSource {
  std::string name;
  DType dtype = DType::f32;
  Dims sizes;
  std::span<const std::byte> bytes;
  std::function<void(const ByteSink&)> produce;
};

// `crc32c`: each source is produced twice, first for its checksum.
enum class SafetensorsSums : uint8_t { none, crc32c };

// Lays out a file: equal inputs give equal bytes. Tensors are ordered by decreasing element size,
// then by name. `sources` and the memory behind them must outlive the writer.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::span<const TensorSource> sources,
                             std::map<std::string, std::string> metadata = {},
                             SafetensorsSums sums = SafetensorsSums::none);

  uint64_t file_bytes() const;
  void write(OutputFile& file) const;

 private:
  std::span<const TensorSource> sources_;
  std::vector<uint32_t> order_;  // of the data
  std::string header_;           // with its length in front
  uint64_t data_bytes_ = 0;
};

// Writes a file durably (write_file_durably).
void write_safetensors(const std::string& path, std::span<const TensorSource> sources,
                       const std::map<std::string, std::string>& metadata = {},
                       FileSystem& files = file_system(),
                       SafetensorsSums sums = SafetensorsSums::none);

}  // namespace binade
