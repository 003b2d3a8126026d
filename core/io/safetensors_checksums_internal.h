// The checksums of a safetensors file (core/io/safetensors.h); internal.
#pragma once
#include <binade/core/io/safetensors.h>

namespace binade {

// Writing: adds the two keys to the metadata, with the checksums of the sources in this order and
// zeros for the header's checksum, which sign_safetensors_header() fills in.
void add_safetensors_checksums(std::span<const TensorSource> sources,
                               std::span<const uint32_t> order,
                               std::map<std::string, std::string>& metadata);
void sign_safetensors_header(std::string& json);

// Reading: verifies the header and sets TensorEntry::crc32c, if there are checksums.
void take_safetensors_checksums(const std::string& path, std::string text,
                                SafetensorsHeader& header);
// `got` is the checksum of the bytes that were read.
void check_safetensors_checksum(const std::string& path, const TensorEntry& entry, uint32_t got);

}  // namespace binade
