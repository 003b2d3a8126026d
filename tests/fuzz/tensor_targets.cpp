// JSON headers and safetensors files.
#include <binade/core/io/json_scan_internal.h>
#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors.h>

#include "tests/core/io/model_file_system.h"
#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

void check_header(const SafetensorsHeader& header, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const TensorEntry& entry : header.entries) {
    require(!entry.name.empty() && entry.begin == at && entry.end >= at,
            "tensors follow each other without holes");
    at = entry.end;
    require(!entry.dtype || entry.bytes() == static_cast<uint64_t>(element_count(entry.sizes)) *
                                                 size_of(*entry.dtype),
            "a tensor has the bytes of its elements");
  }
  require(at == data_bytes, "tensors cover the data");
}

void write_bytes(FileSystem& files, const std::string& path, std::string_view bytes) {
  OutputFile file(path, files);
  file.write(bytes);
  file.finish();
}

// Writes the tensors of a file again, with or without checksums, and compares what is read then.
void check_round_trip(const SafetensorsFile& file, FileSystem& files, SafetensorsSums sums) {
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorSource> sources;
  for (const TensorEntry& entry : file.entries()) {
    data.push_back(file.read(entry));
    file.verify(entry);
    if (entry.dtype) {
      sources.push_back({entry.name, *entry.dtype, entry.sizes, data.back(), {}});
    }
  }
  auto metadata = file.metadata();
  metadata.erase(kSafetensorsChecksums);
  metadata.erase(kSafetensorsFormat);
  write_safetensors("again", sources, metadata, files, sums);
  const SafetensorsFile again = SafetensorsFile::open("again", files);
  require(again.entries().size() == sources.size() &&
              again.has_checksums() == (sums == SafetensorsSums::crc32c) &&
              (again.has_checksums() || again.metadata() == metadata),
          "a file is written as it was read");
  for (const TensorSource& source : sources) {
    const TensorEntry& entry = again.at(source.name);
    const std::vector<std::byte> bytes = again.read(entry);
    require(again.dtype_of(entry) == source.dtype, "a tensor that was written has a dtype");
    require(entry.dtype == source.dtype && entry.sizes == source.sizes &&
                std::equal(bytes.begin(), bytes.end(), source.bytes.begin(), source.bytes.end()),
            "a tensor is written as it was read");
  }
}

}  // namespace

// Every token; strings and keys are UTF-8, and the depth returns to 0.
void parse_json(Bytes bytes) {
  JsonScanner scanner("fuzz", text_of(bytes), {.depth = 4, .keys = 1000});
  for (size_t tokens = 0;; ++tokens) {
    require(tokens <= bytes.size() + 1, "a token takes a byte");
    if (tokens % 5 == 4 && bytes.size() % 2 == 1 && scanner.depth() == 0) {
      scanner.skip_value();
    }
    const JsonToken token = scanner.next();
    if (token == JsonToken::end) {
      break;
    }
    if (token == JsonToken::key || token == JsonToken::string) {
      require(is_utf8(scanner.string()), "a string is UTF-8");
      json_quoted_short(scanner.string());
    }
    require(token != JsonToken::integer || scanner.integer() <= uint64_t{1} << 53,
            "an integer is at most 2^53");
    require(scanner.depth() <= 4, "the depth is limited");
  }
  require(scanner.depth() == 0, "what was opened is closed");
}

void parse_safetensors_header(Bytes bytes) {
  // The bytes of data that the header describes come first, so that the fuzzer can choose them.
  if (bytes.size() >= 2) {
    const uint64_t data_bytes = uint64_t(bytes[0]) << 8 | bytes[1];
    check_header(binade::parse_safetensors_header("fuzz", text_of(bytes.subspan(2)), data_bytes),
                 data_bytes);
  }
}

void parse_safetensors(Bytes bytes) {
  testing::ModelFileSystem files;
  write_bytes(files, "fuzz", text_of(bytes));
  const SafetensorsFile file = SafetensorsFile::open("fuzz", files);
  check_round_trip(file, files, SafetensorsSums::none);
  check_round_trip(file, files, SafetensorsSums::crc32c);
  for (const TensorEntry& entry : file.entries()) {
    file.dtype_of(entry);  // an error names a type that Binade does not have
  }
}

}  // namespace binade::fuzz
