// Shared by the rows of pointwise ops.
#pragma once
#include <binade/core/tensor/create.h>
#include <tests/op_table/op_table.h>

namespace binade::op_table {

using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);
using Real2 = double (*)(double, double);

inline const std::vector<Shapes> kUnaryShapes = {
    {{4, 6}}, {{}}, {{1}}, {{1, 5, 1}}, {{0, 3}}, {{2, 1, 3, 2, 2}}, {{2, 3, 2, 2}}, {{33}}};

// Equal sizes, broadcast left, right and both ways, 0-d, sizes of 1, empty, 5-d.
inline const std::vector<Shapes> kBinaryShapes = {{{4, 6}, {4, 6}},
                                                  {{4}, {3, 4}},
                                                  {{3, 4}, {4}},
                                                  {{3, 1}, {1, 4}},
                                                  {{}, {}},
                                                  {{}, {3}},
                                                  {{3, 2}, {}},
                                                  {{1, 1}, {1}},
                                                  {{0, 3}, {1, 3}},
                                                  {{0}, {1}},
                                                  {{2, 1, 3, 2, 2}, {2, 1, 1, 2, 1}},
                                                  {{2, 3, 2, 2}, {1, 3, 1, 1}},
                                                  {{2, 3, 2, 2}, {2, 3, 2, 2}}};

inline ErrorCase undefined_operand(const std::function<Tensor(const Tensor&)>& op) {
  return {"undefined operand", [op] { op(Tensor()); }};
}

inline OpRow unary(const char* name, const char* attributes,
                   std::function<Tensor(const Tensor&)> op, std::function<double(double)> f,
                   const Domain& domain) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = kUnaryShapes;
  row.domains = {domain};
  row.function = [op](const Tensors& x) { return Tensors{op(x[0])}; };
  row.reference = [f](const Arrays& x) { return Arrays{map(x[0], f)}; };
  row.accuracy = Accuracy::ulps;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {undefined_operand(op), {"bool operand", [op] { op(zeros({3}, DType::boolean)); }}};
  return row;
}

inline OpRow exact(OpRow row) {
  row.accuracy = Accuracy::exact;
  return row;
}

// Accurate to `ulps` of max(|y|, floor): the function cancels near a zero.
inline OpRow near_zero(OpRow row, double floor) {
  row.floor = floor;
  return row;
}

inline OpRow binary(const char* name, BinaryOp op, Real2 f, const std::vector<Domain>& domains) {
  OpRow row;
  row.name = name;
  row.shapes = kBinaryShapes;
  row.domains = domains;
  row.function = [op](const Tensors& x) { return Tensors{op(x[0], x[1])}; };
  row.reference = [f](const Arrays& x) { return Arrays{zip(x[0], x[1], f)}; };
  row.large = {{257, 301}, {257, 301}};
  row.timed = {{1024, 1024}, {1024, 1024}};
  row.errors = {
      {"shapes that do not broadcast",
       [op] {
         op(ones({3, 4}), ones({2, 4}));
       }},
      {"dtypes that differ", [op] { op(ones({3}), ones({3}, DType::f64)); }},
      {"undefined operand", [op] { op(ones({3}), Tensor()); }},
  };
  return row;
}

inline OpRow compare(const char* name, BinaryOp op, Real2 f) {
  OpRow row = binary(name, op, f, {{.low = -2, .high = 2, .whole = true}});
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::boolean;
  return row;
}

}  // namespace binade::op_table
