// Shared by the rows of data-moving ops.
#pragma once
#include <tests/op_table/op_table.h>

namespace binade::op_table {

// A row of one input that is exact in every dtype.
inline OpRow move_row(const std::string& name, const std::string& attributes,
                      const std::vector<Shapes>& shapes,
                      const std::function<Tensor(const Tensor&)>& op,
                      const std::function<Array(const Array&)>& reference) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = shapes;
  row.function = [op](const Tensors& x) { return Tensors{op(x[0])}; };
  row.reference = [reference](const Arrays& x) { return Arrays{reference(x[0])}; };
  row.any_dtype = true;
  row.large = shapes[0];
  row.timed = lengthened(shapes[0]);
  row.errors = {{"undefined operand", [op] { op(Tensor()); }}};
  return row;
}

// The same elements in the same order, with other sizes.
inline Array renamed(const Array& x, const Dims& sizes) { return {sizes, x.values}; }

inline ErrorCase fails(const char* what, const std::function<void()>& run) { return {what, run}; }

inline void add_errors(OpRow& row, const std::vector<ErrorCase>& errors) {
  row.errors.insert(row.errors.end(), errors.begin(), errors.end());
}

}  // namespace binade::op_table
