#include <binade/core/io/crc32c.h>
#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors.h>
#include <binade/core/io/safetensors_checksums_internal.h>
#include <binade/core/io/safetensors_types_internal.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace binade {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;

uint64_t from_little_endian(std::span<const std::byte, kLengthBytes> bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<uint64_t>(bytes[i]);
  }
  return value;
}

std::string to_little_endian(uint64_t value) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

void check_booleans(const std::string& path, const TensorEntry& entry,
                    std::span<const std::byte> bytes) {
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  check(bad == bytes.end(), path, ": tensor ", json_quoted_short(entry.name),
        ": got a BOOL element that is neither 0 nor 1");
}

// --- writing ---

constexpr const char* kWriter = "write_safetensors";

uint64_t source_bytes(const TensorSource& source) {
  return static_cast<uint64_t>(element_count(source.sizes)) * size_of(source.dtype);
}

void check_source(const TensorSource& source) {
  check_tensor_name(kWriter, source.name);
  const std::string name = json_quoted_short(source.name);
  check(is_utf8(source.name), kWriter, ": tensor ", name, ": the name is not UTF-8");
  check(source.name != "__metadata__", kWriter, ": a tensor cannot have the name __metadata__");
  const uint64_t bytes = source_bytes(source);
  check(source.produce || source.bytes.size() == bytes, kWriter, ": tensor ", name, ": got ",
        source.bytes.size(), " bytes, expected ", bytes, " for ", source.dtype, " of shape ",
        source.sizes);
}

std::string metadata_json(const std::map<std::string, std::string>& metadata) {
  std::string json = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    check(is_utf8(key) && is_utf8(value), kWriter, ": metadata ", json_quoted_short(key),
          " is not UTF-8");
    json += text(json.back() == '{' ? "" : ",", json_quoted(key), ":", json_quoted(value));
  }
  return json + "}";
}

std::string tensor_json(const TensorSource& source, uint64_t begin, uint64_t end) {
  std::string sizes;
  for (const int64_t size : source.sizes) {
    sizes += text(sizes.empty() ? "" : ",", size);
  }
  return text(json_quoted(source.name), ":{\"dtype\":\"", safetensors_type_name(source.dtype),
              "\",\"shape\":[", sizes, "],\"data_offsets\":[", begin, ",", end, "]}");
}

void write_source(const TensorSource& source, OutputFile& file) {
  if (!source.produce) {
    file.write(source.bytes);
    return;
  }
  const uint64_t begin = file.size(), bytes = source_bytes(source);
  source.produce([&](std::span<const std::byte> piece) { file.write(piece); });
  check(file.size() - begin == bytes, file.path(), ": tensor ", json_quoted_short(source.name),
        ": got ", file.size() - begin, " bytes from its producer, expected ", bytes);
}

}  // namespace

SafetensorsFile::SafetensorsFile(InputFile file, SafetensorsHeader header, uint64_t data_offset)
    : file_(std::move(file)),
      header_(std::move(header)),
      by_name_(header_.entries.size()),
      data_offset_(data_offset) {
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return entries()[a].name < entries()[b].name; });
}

SafetensorsFile SafetensorsFile::open(const std::string& path, FileSystem& files) {
  InputFile file(path, files);
  check(file.size() >= kLengthBytes, path, ": the file has ", file.size(),
        " bytes, expected a safetensors file of at least ", kLengthBytes);
  std::byte length_bytes[kLengthBytes];
  file.read(0, length_bytes);
  const uint64_t length = from_little_endian(length_bytes);
  check(length > 0 && length <= kSafetensorsMaxHeader, path, ": the header has ", length,
        " bytes, expected 1 to ", kSafetensorsMaxHeader,
        " (is it a safetensors file? PyTorch writes one by "
        "safetensors.torch.save_file(), not by torch.save())");
  check(length <= file.size() - kLengthBytes, path, ": the header has ", length,
        " bytes, but the file only ", file.size(), " (cut off?)");
  std::string text(length, '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  const uint64_t data_offset = kLengthBytes + length;
  SafetensorsHeader header = parse_safetensors_header(path, text, file.size() - data_offset);
  take_safetensors_checksums(path, std::move(text), header);
  return SafetensorsFile(std::move(file), std::move(header), data_offset);
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t i, std::string_view wanted) { return entries()[i].name < wanted; });
  return found != by_name_.end() && entries()[*found].name == name ? &entries()[*found] : nullptr;
}

const TensorEntry& SafetensorsFile::at(std::string_view name) const {
  const TensorEntry* entry = find(name);
  check(entry != nullptr, path(), ": there is no tensor ", json_quoted_short(name), " among the ",
        entries().size(), " of this file");
  return *entry;
}

DType SafetensorsFile::dtype_of(const TensorEntry& entry) const {
  check(entry.dtype.has_value(), path(), ": tensor ", json_quoted_short(entry.name), " has dtype ",
        entry.type, ", which Binade has no element type for: read its bytes, or convert the file");
  return *entry.dtype;
}

void SafetensorsFile::read(const TensorEntry& entry, std::span<std::byte> bytes) const {
  check(bytes.size() == entry.bytes(), path(), ": tensor ", json_quoted_short(entry.name),
        ": got room for ", bytes.size(), " bytes, expected ", entry.bytes());
  file_.read(data_offset_ + entry.begin, bytes);
  if (entry.crc32c) {
    check_safetensors_checksum(path(), entry, crc32c(bytes));
  }
  if (entry.dtype == DType::boolean) {
    check_booleans(path(), entry, bytes);
  }
}

std::vector<std::byte> SafetensorsFile::read(const TensorEntry& entry) const {
  std::vector<std::byte> bytes(entry.bytes());
  read(entry, bytes);
  return bytes;
}

void SafetensorsFile::verify(const TensorEntry& entry) const {
  std::vector<std::byte> piece(std::min<uint64_t>(entry.bytes(), 1 << 20));
  uint32_t crc = 0;
  for (uint64_t at = entry.begin; at < entry.end; at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), entry.end - at));
    file_.read(data_offset_ + at, piece);
    crc = crc32c(piece, crc);
  }
  check_safetensors_checksum(path(), entry, crc);
}

SafetensorsWriter::SafetensorsWriter(std::span<const TensorSource> sources,
                                     std::map<std::string, std::string> metadata,
                                     SafetensorsSums sums)
    : sources_(sources), order_(sources.size()) {
  check(sources.size() <= kSafetensorsMaxTensors, kWriter, ": got ", sources.size(),
        " tensors, expected at most ", kSafetensorsMaxTensors);
  std::for_each(sources.begin(), sources.end(), check_source);
  std::iota(order_.begin(), order_.end(), 0u);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    const size_t size_a = size_of(sources[a].dtype), size_b = size_of(sources[b].dtype);
    return size_a != size_b ? size_a > size_b : sources[a].name < sources[b].name;
  });
  check(!metadata.contains(kSafetensorsChecksums) && !metadata.contains(kSafetensorsFormat),
        kWriter, ": got metadata ", kSafetensorsChecksums, " or ", kSafetensorsFormat,
        ", which are for the file's own checksums");
  if (sums == SafetensorsSums::crc32c) {
    add_safetensors_checksums(sources, order_, metadata);
  }
  std::string json = "{" + (metadata.empty() ? "" : metadata_json(metadata));
  for (const uint32_t i : order_) {
    const uint64_t end = data_bytes_ + source_bytes(sources[i]);
    json += (json.size() == 1 ? "" : ",") + tensor_json(sources[i], data_bytes_, end);
    data_bytes_ = end;
  }
  json += "}";
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  check(json.size() <= kSafetensorsMaxHeader, kWriter, ": the header would have ", json.size(),
        " bytes, expected at most ", kSafetensorsMaxHeader);
  if (sums == SafetensorsSums::crc32c) {
    sign_safetensors_header(json);
  }
  // The parser rejects equal names with different dtypes, and anything else a reader would reject.
  parse_safetensors_header(kWriter, json, data_bytes_);
  header_ = to_little_endian(json.size()) + json;
}

uint64_t SafetensorsWriter::file_bytes() const { return header_.size() + data_bytes_; }

void SafetensorsWriter::write(OutputFile& file) const {
  file.write(header_);
  for (const uint32_t i : order_) {
    write_source(sources_[i], file);
  }
}

void write_safetensors(const std::string& path, std::span<const TensorSource> sources,
                       const std::map<std::string, std::string>& metadata, FileSystem& files,
                       SafetensorsSums sums) {
  const SafetensorsWriter writer(sources, metadata, sums);
  write_file_durably(
      path, [&](OutputFile& file) { writer.write(file); }, files);
}

}  // namespace binade
