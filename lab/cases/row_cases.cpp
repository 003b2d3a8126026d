// Cases that work on rows: softmax and layer_norm.
#include <binade/lab/cases/case_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::lab {
namespace {

const std::vector<Sizes> kRowShapes = {{{"rows", 1}, {"cols", 1}},
                                       {{"rows", 7}, {"cols", 33}},
                                       {{"rows", 5}, {"cols", 1000}},
                                       {{"rows", 257}, {"cols", 20}},
                                       {{"rows", 3}, {"cols", 4100}}};

CaseParameter matrix(const char* name, Role role) {
  return {.name = name, .role = role, .extents = {"rows", "cols"}};
}
CaseParameter row_size(const char* name) { return {.name = name, .role = Role::size}; }

// Computes the bounds row by row: the error of a sum of n terms is at most n units of the sum of
// their magnitudes, and the error of exp(t) is at most |t| + 4 units of its value.
std::map<std::string, Expected> softmax_reference(const Numbers& numbers) {
  const int64_t rows = numbers.size("rows"), cols = numbers.size("cols");
  const Array& x = numbers.in("x");
  Expected y{Array(x.size()), Array(x.size())};
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x.data() + r * cols;
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      largest = std::isnan(row[c]) ? row[c] : std::max(largest, row[c]);
    }
    for (int64_t c = 0; c < cols; ++c) {
      sum += std::exp(row[c] - largest);
    }
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c);
      const double t = row[c] - largest, value = std::exp(t) / sum;
      const double units =
          static_cast<double>(cols) + (std::isfinite(t) ? 4 * std::abs(t) : 0) + 32;
      y.values[i] = value;
      y.bounds[i] = value * units * numbers.unit + 2 * kTiny;
    }
  }
  return {{"y", std::move(y)}};
}

// The kernel may compute the variance from the mean of the squares, whose error is n units.
std::map<std::string, Expected> layer_norm_reference(const Numbers& numbers) {
  const int64_t rows = numbers.size("rows"), cols = numbers.size("cols");
  const Array &x = numbers.in("x"), &w = numbers.in("w"), &b = numbers.in("b");
  const double eps = numbers.scalars.at("eps"), n = static_cast<double>(cols);
  Expected y{Array(x.size()), Array(x.size())};
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x.data() + r * cols;
    double mean = 0, sizes = 0, squares = 0, variance = 0;
    for (int64_t c = 0; c < cols; ++c) {
      mean += row[c] / n;
      sizes += std::abs(row[c]) / n;
      squares += row[c] * row[c] / n;
    }
    for (int64_t c = 0; c < cols; ++c) {
      variance += (row[c] - mean) * (row[c] - mean) / n;
    }
    const double units = (n + 16) * numbers.unit;
    const double rstd = 1 / std::sqrt(variance + eps);
    const double most = 1 / std::sqrt(std::max(variance - 4 * units * squares, 0.0) + eps);
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c), j = static_cast<size_t>(c);
      const double deviation = row[c] - mean;
      y.values[i] = deviation * rstd * w[j] + b[j];
      y.bounds[i] = (units * sizes * most + std::abs(deviation) * (most - rstd)) * std::abs(w[j]) +
                    8 * numbers.unit * (std::abs(deviation * most * w[j]) + std::abs(b[j]));
    }
  }
  return {{"y", std::move(y)}};
}

}  // namespace

Case softmax_case() {
  Case c;
  c.name = "softmax";
  c.summary =
      "y[r][c] = exp(x[r][c] - m) / sum over row r of exp(x[r][.] - m), m the row's maximum";
  c.parameters = {matrix("x", Role::input), matrix("y", Role::output), row_size("rows"),
                  row_size("cols")};
  c.size_order = {"rows", "cols"};
  c.shapes = kRowShapes;
  c.inputs = {{"normal"}, {"large"}, {"-inf"}, {"equal"}, {"nan"}};
  c.lesson = "lesson 4, \"reductions, races and determinism\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    Array& x = numbers.arrays.at("x");
    fill_array(x, set, random, {.range = 3, .large = 1, .row = numbers.size("cols")});
    if (set == "large") {  // the exponential of 90 is more than a float holds
      const auto cols = static_cast<size_t>(numbers.size("cols"));
      for (size_t i = 0; i < x.size(); ++i) {
        // exp(-150) underflows, so a maximum that starts at 0 is noticed on such a row.
        x[i] = i / cols % 3 == 1 ? random.uniform(-250, -150) : random.uniform(-30, 90);
      }
      x[0] = 90;
    }
  };
  c.reference = softmax_reference;
  c.flops = [](const Sizes& s) { return 5.0 * static_cast<double>(s.at("rows") * s.at("cols")); };
  return c;
}

Case layer_norm_case() {
  Case c;
  c.name = "layer_norm";
  c.summary = "y[r][c] = (x[r][c] - mean of row r) / sqrt(variance of row r + eps) * w[c] + b[c]";
  c.parameters = {matrix("x", Role::input),
                  {.name = "w", .role = Role::input, .extents = {"cols"}},
                  {.name = "b", .role = Role::input, .extents = {"cols"}},
                  matrix("y", Role::output),
                  row_size("rows"),
                  row_size("cols"),
                  {.name = "eps", .role = Role::scalar, .value = 0x1p-16}};
  c.size_order = {"rows", "cols"};
  c.shapes = kRowShapes;
  c.inputs = {{"normal"}, {"large"}, {"equal"}, {"nan"}};
  c.lesson = "lesson 4, \"reductions, races and determinism\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    // The squares of "large" inputs exceed the range of __half, and so do their sums.
    fill_array(numbers.arrays.at("x"), set, random, {.range = 2, .large = 200});
    fill_array(numbers.arrays.at("w"), "normal", random, {.range = 1.5});
    fill_array(numbers.arrays.at("b"), "normal", random, {.range = 1});
  };
  c.reference = layer_norm_reference;
  c.flops = [](const Sizes& s) { return 8.0 * static_cast<double>(s.at("rows") * s.at("cols")); };
  return c;
}

}  // namespace binade::lab
