// Rows of ops that select by a mask, interpolate, and combine masks.
#include <tests/op_table/pointwise_row.h>

namespace binade::op_table {
namespace {

const Domain kMask{.fixed = true, .mask = true};

using Real3 = std::function<double(double, double, double)>;

Array zip3(const Array& a, const Array& b, const Array& c, const Real3& f) {
  return generate(broadcast(a.sizes, broadcast(b.sizes, c.sizes)),
                  [&](const Dims& at) { return f(a.at(at), b.at(at), c.at(at)); });
}

// Equal sizes, every operand broadcast, 0-d, empty, 5-d.
const std::vector<Shapes> kTernaryShapes = {{{4, 6}, {4, 6}, {4, 6}},
                                            {{3, 1}, {4}, {3, 4}},
                                            {{3}, {2, 1, 1}, {4, 1}},
                                            {{5, 3}, {}, {3}},
                                            {{}, {}, {}},
                                            {{0, 3}, {0, 3}, {3}},
                                            {{2, 1, 3, 2, 2}, {1, 3, 1, 2}, {2, 1, 1, 1, 2}}};
const std::vector<Shapes> kMaskedShapes = {
    {{4, 6}, {4, 6}}, {{4, 6}, {6}}, {{3, 4}, {3, 1}}, {{4}, {3, 4}},
    {{}, {}},         {{0, 3}, {3}}, {{1, 5, 1}, {1}}, {{2, 3, 2, 2}, {3, 1, 2}}};

std::vector<ErrorCase> mask_errors(const std::function<void(const Tensor&, const Tensor&)>& op) {
  return {{"a condition that is not bool", [op] { op(ones({3}), ones({3})); }},
          {"shapes that do not broadcast", [op] { op(ones({3}, DType::boolean), ones({4})); }},
          {"undefined condition", [op] { op(Tensor(), ones({3})); }},
          {"undefined operand", [op] { op(ones({3}, DType::boolean), Tensor()); }}};
}

OpRow where_row() {
  OpRow row;
  row.name = "where";
  row.shapes = kTernaryShapes;
  row.domains = {kMask, {}, {}};
  row.function = [](const Tensors& x) { return Tensors{where(x[0], x[1], x[2])}; };
  row.reference = [](const Arrays& x) {
    return Arrays{
        zip3(x[0], x[1], x[2], [](double c, double a, double b) { return c != 0 ? a : b; })};
  };
  row.any_dtype = true;
  row.large = {{257, 301}, {257, 301}, {257, 301}};
  row.timed = {{1024, 1024}, {1024, 1024}, {1024, 1024}};
  row.errors = mask_errors([](const Tensor& c, const Tensor& x) { where(c, x, x); });
  row.errors.push_back({"dtypes that differ", [] {
                          where(ones({3}, DType::boolean), ones({3}), ones({3}, DType::f64));
                        }});
  return row;
}

// One tensor and a mask. `mask_first`: the order of the operands.
OpRow masked(const char* name, const char* attributes, bool mask_first,
             const std::function<Tensor(const Tensor&, const Tensor&)>& op,
             const std::function<double(double mask, double x)>& f) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  for (const Shapes& shapes : kMaskedShapes) {
    row.shapes.push_back(mask_first ? Shapes{shapes[1], shapes[0]} : shapes);
  }
  row.domains = mask_first ? std::vector<Domain>{kMask, {}} : std::vector<Domain>{{}, kMask};
  row.function = [=](const Tensors& x) {
    return Tensors{mask_first ? op(x[0], x[1]) : op(x[1], x[0])};
  };
  row.reference = [=](const Arrays& x) {
    return Arrays{mask_first ? zip(x[0], x[1], f) : zip(x[1], x[0], f)};
  };
  row.large = {{257, 301}, {257, 301}};
  row.timed = {{1024, 1024}, {1024, 1024}};
  row.errors = mask_errors(op);
  return row;
}

OpRow numbers_row() {
  OpRow row;
  row.name = "where";
  row.attributes = "two numbers";
  row.shapes = kUnaryShapes;
  row.domains = {kMask};
  row.function = [](const Tensors& x) { return Tensors{where(x[0], 0.25, -1.5)}; };
  row.reference = [](const Arrays& x) {
    return Arrays{map(x[0], [](double c) { return c != 0 ? 0.25 : -1.5; })};
  };
  row.differentiable = false;
  row.any_dtype = true;
  row.output_dtype = DType::f32;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {{"a condition that is not bool", [] { where(ones({3}), 1, 2); }},
                {"undefined condition", [] { where(Tensor(), 1, 2); }}};
  return row;
}

// Bounds that are tensors, below and above each other; no operand equals another one.
OpRow clamp_row() {
  OpRow row;
  row.name = "clamp";
  row.attributes = "tensors";
  row.shapes = kTernaryShapes;
  row.domains = {{.low = -3, .high = 3, .whole = true, .shift = 0.25},
                 {.low = -3, .high = 1, .whole = true, .shift = 0.5},
                 {.low = -1, .high = 3, .whole = true, .shift = 0.75}};
  row.function = [](const Tensors& x) { return Tensors{clamp(x[0], x[1], x[2])}; };
  row.reference = [](const Arrays& x) {
    return Arrays{zip3(x[0], x[1], x[2], [](double v, double low, double high) {
      return std::min(std::max(v, low), high);
    })};
  };
  row.large = {{257, 301}, {257, 301}, {257, 301}};
  row.timed = {{1024, 1024}, {1024, 1024}, {1024, 1024}};
  row.errors = {{"undefined operand", [] { clamp(Tensor(), ones({3}), ones({3})); }},
                {"no bound", [] { clamp(ones({3}), Tensor(), Tensor()); }},
                {"shapes that do not broadcast", [] { clamp(ones({3}), ones({4}), ones({3})); }},
                {"bool operands",
                 [] {
                   const Tensor x = ones({3}, DType::boolean);
                   clamp(x, x, x);
                 }},
                {"dtypes that differ", [] { clamp(ones({3}), ones({3}, DType::f64), ones({3})); }}};
  return row;
}

OpRow lerp_row(const char* attributes, size_t inputs,
               const std::function<Tensor(const Tensors&)>& op,
               const std::function<Array(const Arrays&)>& reference) {
  OpRow row;
  row.name = "lerp";
  row.attributes = attributes;
  row.shapes = inputs == 3 ? kTernaryShapes : kBinaryShapes;
  row.domains = {{}, {}, {.low = -0.5, .high = 1.5, .avoid = {0.5}, .gap = 0.01}};
  row.function = [=](const Tensors& x) { return Tensors{op(x)}; };
  row.reference = [=](const Arrays& x) { return Arrays{reference(x)}; };
  row.accuracy = Accuracy::sums;
  row.large = Shapes(inputs, Dims{257, 301});
  row.timed = Shapes(inputs, Dims{1024, 1024});
  const auto all = [=](const Tensor& a, const Tensor& b) {
    op(inputs == 3 ? Tensors{a, b, a} : Tensors{a, b});
  };
  row.errors = {
      {"shapes that do not broadcast",
       [=] {
         all(ones({3, 4}), ones({2, 4}));
       }},
      {"dtypes that differ", [=] { all(ones({3}), ones({3}, DType::f64)); }},
      {"undefined operand", [=] { all(ones({3}), Tensor()); }},
      {"bool operands", [=] { all(ones({3}, DType::boolean), ones({3}, DType::boolean)); }}};
  return row;
}

OpRow logical(const char* name, BinaryOp op, Real2 f) {
  OpRow row = binary(name, op, f, {{.low = -2, .high = 2, .whole = true}});
  row.any_dtype = true;
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::boolean;
  row.errors = {{"shapes that do not broadcast",
                 [op] {
                   op(ones({3, 4}), ones({2, 4}));
                 }},
                {"undefined operand", [op] { op(ones({3}), Tensor()); }}};
  return row;
}

void append_logic(std::vector<OpRow>& rows) {
  OpRow negation =
      exact(unary("logical_not", "", logical_not, [](double x) { return double(x == 0); },
                  {.low = -2, .high = 2, .whole = true}));
  negation.any_dtype = true;
  negation.differentiable = false;
  negation.many_zeros = true;
  negation.output_dtype = DType::boolean;
  negation.errors = {undefined_operand(logical_not)};
  rows.push_back(negation);
  rows.push_back(logical("logical_and", logical_and,
                         [](double a, double b) { return double(a != 0 && b != 0); }));
  rows.push_back(logical("logical_or", logical_or,
                         [](double a, double b) { return double(a != 0 || b != 0); }));
  rows.push_back(logical("logical_xor", logical_xor,
                         [](double a, double b) { return double((a != 0) != (b != 0)); }));
}

}  // namespace

std::vector<OpRow> selection_rows() {
  std::vector<OpRow> rows = {where_row()};
  rows.push_back(masked(
      "where", "x, -1.5", true, [](const Tensor& c, const Tensor& x) { return where(c, x, -1.5); },
      [](double c, double x) { return c != 0 ? x : -1.5; }));
  rows.push_back(masked(
      "where", "-1.5, x", true, [](const Tensor& c, const Tensor& x) { return where(c, -1.5, x); },
      [](double c, double x) { return c != 0 ? -1.5 : x; }));
  rows.back().number = true;
  rows.push_back(masked(
      "masked_fill", "0.75", false,
      [](const Tensor& c, const Tensor& x) { return masked_fill(x, c, 0.75); },
      [](double c, double x) { return c != 0 ? 0.75 : x; }));
  rows.back().errors.push_back(
      {"a number that the dtype does not hold",
       [] { masked_fill(ones({3}, DType::u8), ones({3}, DType::boolean), 0.75); }});
  rows.push_back(numbers_row());
  rows.push_back(clamp_row());
  rows.push_back(lerp_row(
      "0.3", 2, [](const Tensors& x) { return lerp(x[0], x[1], 0.3); },
      [](const Arrays& x) {
        return zip(x[0], x[1], [](double a, double b) { return a + 0.3 * (b - a); });
      }));
  rows.push_back(lerp_row(
      "tensor", 3, [](const Tensors& x) { return lerp(x[0], x[1], x[2]); },
      [](const Arrays& x) {
        return zip3(x[0], x[1], x[2], [](double a, double b, double w) { return a + w * (b - a); });
      }));
  append_logic(rows);
  return rows;
}

}  // namespace binade::op_table
