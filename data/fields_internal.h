// Fields by name. Internal to data.
#pragma once
#include <binade/core/io/named_tensors.h>

#include <string_view>

namespace binade::data {

// Null if there is none.
const Tensor* find_field(const NamedTensors& fields, std::string_view name);
// Adds the tensor or replaces the one of that name; an undefined tensor removes it.
void set_field(NamedTensors& fields, std::string_view name, Tensor value);
// "x, y", or "none".
std::string names_of(const NamedTensors& fields);
// Throws Error unless names are not empty and differ, and all tensors are defined.
void check_fields(const char* op, const NamedTensors& fields);
// A copy of row `row` of a row-major tensor on the CPU.
Tensor copy_row(const Tensor& tensor, int64_t row);
// The tensor without history, row-major on the CPU.
Tensor plain(const Tensor& tensor);

}  // namespace binade::data
