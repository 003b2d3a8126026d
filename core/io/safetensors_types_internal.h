// Element types and names of the safetensors format (internal to core).
#pragma once
#include <binade/kernels/base/dtype.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace binade {

struct SafetensorsType {
  std::string_view name;
  uint64_t bits;               // of one element
  std::optional<DType> dtype;  // empty if Binade has none
};

const SafetensorsType* find_safetensors_type(std::string_view name);  // null if unknown
std::string_view safetensors_type_name(DType dtype);

// Throws unless a tensor may have this name. The message begins with `path`.
void check_tensor_name(const std::string& path, std::string_view name);

}  // namespace binade
