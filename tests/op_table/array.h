// Array: row-major values in double. The references of the op table compute with these, with simple
// loops and no code of the engine except Dims.
#pragma once
#include <binade/kernels/base/dims.h>
#include <binade/kernels/base/dtype.h>

#include <functional>
#include <vector>

namespace binade::op_table {

struct Array {
  Dims sizes;
  std::vector<double> values;

  int64_t numel() const { return static_cast<int64_t>(values.size()); }
  int dim() const { return sizes.size(); }
  // The element at an index; an index of another rank or with sizes of 1 broadcasts.
  double at(const Dims& index) const;
};
using Arrays = std::vector<Array>;

// Elements of a result of these sizes, each from its index.
Array generate(const Dims& sizes, const std::function<double(const Dims&)>& f);
Array map(const Array& x, const std::function<double(double)>& f);
Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f);

// Calls f for every index of a tensor of these sizes, row-major.
void for_each(const Dims& sizes, const std::function<void(const Dims&)>& f);

// The value nearest to x (ties to even) that the dtype holds; integers are truncated.
double round_to(DType dtype, double x);
Array round_to(DType dtype, const Array& x);

Dims broadcast(const Dims& a, const Dims& b);

}  // namespace binade::op_table
