// Cases without sums over many elements: transpose, elementwise and stencil.
#include <binade/lab/cases/case_internal.h>

#include <cmath>

namespace binade::lab {
namespace {

const std::vector<Sizes> kMatrices = {{{"rows", 1}, {"cols", 1}},
                                      {{"rows", 7}, {"cols", 33}},
                                      {{"rows", 65}, {"cols", 31}},
                                      {{"rows", 96}, {"cols", 128}}};

std::vector<CaseParameter> two_matrices(const char* rows_of_y, const char* cols_of_y) {
  return {{.name = "x", .role = Role::input, .extents = {"rows", "cols"}},
          {.name = "y", .role = Role::output, .extents = {rows_of_y, cols_of_y}},
          {.name = "rows", .role = Role::size},
          {.name = "cols", .role = Role::size}};
}

void fill_matrix(Numbers& numbers, const std::string& set) {
  CaseRandom random(numbers.seed);
  fill_array(numbers.arrays.at("x"), set, random);
}

// The mean of an element and its four neighbours, with zeros outside.
std::map<std::string, Expected> stencil_reference(const Numbers& numbers) {
  const int64_t rows = numbers.size("rows"), cols = numbers.size("cols");
  const Array& x = numbers.in("x");
  Expected y{Array(x.size()), Array(x.size())};
  const auto at = [&](int64_t r, int64_t c) {
    return r < 0 || c < 0 || r >= rows || c >= cols ? 0.0 : x[static_cast<size_t>(r * cols + c)];
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const double terms[] = {at(r, c), at(r, c - 1), at(r, c + 1), at(r - 1, c), at(r + 1, c)};
      const auto i = static_cast<size_t>(r * cols + c);
      for (const double term : terms) {
        y.values[i] += term / 5;
        y.bounds[i] += std::abs(term) / 5 * 8 * numbers.unit;
      }
    }
  }
  return {{"y", std::move(y)}};
}

}  // namespace

Case transpose_case() {
  Case c;
  c.name = "transpose";
  c.summary = "y[c][r] = x[r][c]; x is rows x cols, y is cols x rows";
  c.parameters = two_matrices("cols", "rows");
  c.size_order = {"rows", "cols"};
  c.shapes = kMatrices;
  c.inputs = {{"normal"}, {"nan"}};
  c.lesson = "lesson 2, \"coalescing\"";
  c.fill = fill_matrix;
  c.reference = [](const Numbers& numbers) -> std::map<std::string, Expected> {
    const auto rows = static_cast<size_t>(numbers.size("rows"));
    const auto cols = static_cast<size_t>(numbers.size("cols"));
    const Array& x = numbers.in("x");
    Expected y{Array(x.size()), Array(x.size())};
    for (size_t i = 0; i < x.size(); ++i) {
      y.values[i % cols * rows + i / cols] = x[i];
    }
    return {{"y", std::move(y)}};
  };
  c.flops = [](const Sizes&) { return 0.0; };
  return c;
}

Case elementwise_case() {
  Case c;
  c.name = "elementwise";
  c.summary = "y[i] = alpha * x[i] + b[i]";
  c.parameters = {{.name = "x", .role = Role::input, .extents = {"n"}},
                  {.name = "b", .role = Role::input, .extents = {"n"}},
                  {.name = "y", .role = Role::output, .extents = {"n"}},
                  {.name = "n", .role = Role::size},
                  {.name = "alpha", .role = Role::scalar, .value = 1.5}};
  c.size_order = {"n"};
  c.shapes = {{{"n", 1}}, {{"n", 33}}, {{"n", 1000}}, {{"n", 20011}}};
  c.inputs = {{"normal"}, {"large"}, {"-inf"}, {"equal"}, {"nan"}};
  c.lesson = "lesson 1, \"threads and memory\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    fill_array(numbers.arrays.at("x"), set, random);
    fill_array(numbers.arrays.at("b"), "normal", random);
  };
  c.reference = [](const Numbers& numbers) -> std::map<std::string, Expected> {
    const Array &x = numbers.in("x"), &b = numbers.in("b");
    const double alpha = numbers.scalars.at("alpha");
    Expected y{Array(x.size()), Array(x.size())};
    for (size_t i = 0; i < x.size(); ++i) {
      y.values[i] = alpha * x[i] + b[i];
      y.bounds[i] = 2 * numbers.unit * (std::abs(alpha * x[i]) + std::abs(b[i]));
    }
    return {{"y", std::move(y)}};
  };
  c.flops = [](const Sizes& s) { return 2.0 * static_cast<double>(s.at("n")); };
  return c;
}

Case stencil_case() {
  Case c;
  c.name = "stencil";
  c.summary =
      "y[r][c] = (x[r][c] + its left, right, upper and lower neighbour) / 5, 0 outside of x";
  c.parameters = two_matrices("rows", "cols");
  c.size_order = {"rows", "cols"};
  c.shapes = kMatrices;
  c.inputs = {{"normal"}, {"large", false}, {"equal"}, {"nan"}};
  c.lesson = "lesson 2, \"coalescing\"";
  c.fill = fill_matrix;
  c.reference = stencil_reference;
  c.flops = [](const Sizes& s) { return 5.0 * static_cast<double>(s.at("rows") * s.at("cols")); };
  return c;
}

}  // namespace binade::lab
