// Rows of activations that pass options on, and of pointwise ops with numbers.
#include <tests/op_table/pointwise_row.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace binade::op_table {
namespace {

double limited(double x, double low, double high) { return std::min(std::max(x, low), high); }

OpRow with_error(OpRow row, const char* what, const std::function<void()>& run) {
  row.errors.push_back({what, run});
  return row;
}

void append_gelu(std::vector<OpRow>& rows) {
  const Domain any{.low = -3, .high = 3};
  const auto gelu_of = [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); };
  rows.push_back(
      near_zero(unary(
                    "gelu", "none", [](const Tensor& x) { return gelu(x, "none"); }, gelu_of, any),
                0.25));
  rows.back() = with_error(rows.back(), "unknown approximation", [] { gelu(ones({3}), "sine"); });
}

void append_piecewise(std::vector<OpRow>& rows) {
  rows.push_back(exact(unary("relu6", "", relu6, [](double x) { return limited(x, 0, 6); },
                             {.low = -1, .high = 9, .avoid = {0, 6}})));
  rows.push_back(exact(unary(
      "hardtanh", "-1, 1.5", [](const Tensor& x) { return hardtanh(x, -1, 1.5); },
      [](double x) { return limited(x, -1, 1.5); }, {.low = -3, .high = 3, .avoid = {-1, 1.5}})));
  rows.back() =
      with_error(rows.back(), "bounds in the wrong order", [] { hardtanh(ones({3}), 1, -1); });
  rows.push_back(exact(unary(
      "clamp", "at least -1", [](const Tensor& x) { return clamp(x, -1); },
      [](double x) { return std::max(x, -1.0); }, {.low = -3, .high = 3, .avoid = {-1}})));
  rows.push_back(exact(unary(
      "clamp", "at most 0.5", [](const Tensor& x) { return clamp(x, {}, 0.5); },
      [](double x) { return std::min(x, 0.5); }, {.low = -3, .high = 3, .avoid = {0.5}})));
  rows.back() =
      with_error(rows.back(), "no bound", [] { clamp(ones({3}), std::nullopt, std::nullopt); });
}

void append_reversed(std::vector<OpRow>& rows) {
  rows.push_back(exact(unary(
      "sub", "2.5 - x", [](const Tensor& x) { return 2.5 - x; }, [](double x) { return 2.5 - x; },
      {})));
  rows.push_back(exact(unary(
      "div", "1.25 / x", [](const Tensor& x) { return 1.25 / x; },
      [](double x) { return 1.25 / x; }, {.low = -3, .high = 3, .avoid = {0}})));
  for (OpRow& row : rows) {
    if (row.name == "sub" || row.name == "div") {  // bool operands count
      row.errors.pop_back();
    }
  }
}

using Comparison = Tensor (*)(const Tensor&, double);

OpRow compare_number(const char* name, Comparison op, bool (*f)(double)) {
  OpRow row = unary(
      name, "1", [op](const Tensor& x) { return op(x, 1); }, [f](double x) { return double(f(x)); },
      {.low = -2, .high = 2, .whole = true});
  row.number = true;
  row.any_dtype = true;
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::boolean;
  row.errors = {undefined_operand([op](const Tensor& x) { return op(x, 1); }),
                {"a number out of range", [op] { op(zeros({3}, DType::u8), 256); }}};
  return row;
}

void append_comparisons(std::vector<OpRow>& rows) {
  rows.push_back(compare_number("eq", eq, [](double x) { return x == 1; }));
  rows.push_back(compare_number("ne", ne, [](double x) { return x != 1; }));
  rows.push_back(compare_number("lt", lt, [](double x) { return x < 1; }));
  rows.push_back(compare_number("le", le, [](double x) { return x <= 1; }));
  rows.push_back(compare_number("gt", gt, [](double x) { return x > 1; }));
  rows.push_back(compare_number("ge", ge, [](double x) { return x >= 1; }));
}

}  // namespace

std::vector<OpRow> activation_rows() {
  std::vector<OpRow> rows;
  append_gelu(rows);
  append_piecewise(rows);
  append_reversed(rows);
  append_comparisons(rows);
  return rows;
}

}  // namespace binade::op_table
