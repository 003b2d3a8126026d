// Shared by the rows of ops with indices.
#pragma once
#include <tests/op_table/move_row.h>

#include <binade/core/tensor/create.h>

namespace binade::op_table {

inline int64_t whole(double x) { return static_cast<int64_t>(x); }
inline Domain indices(int64_t bound) { return {.classes = bound}; }
inline Tensor index_of(std::initializer_list<double> values, const Dims& sizes) {
  return from_values(values, sizes, DType::i64);
}

// A row of several inputs in any dtype; the caller adds function and reference.
inline OpRow index_row(const std::string& name, const std::string& attributes,
                       const std::vector<Shapes>& shapes, const std::vector<Domain>& domains) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = shapes;
  row.domains = domains;
  row.any_dtype = true;
  row.large = shapes[0];
  return row;
}

}  // namespace binade::op_table
