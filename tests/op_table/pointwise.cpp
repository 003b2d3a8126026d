// Rows of the pointwise ops.
#include <tests/op_table/pointwise_row.h>

#include <binade/core/tensor/create.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace binade::op_table {
namespace {

using Real = double (*)(double);

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh_of(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * inner));  // 0.5 (1 + tanh(z)) without its cancellation
}

void append_plain(std::vector<OpRow>& rows) {
  const Domain any, positive{.low = 0.3, .high = 3}, off_zero{.low = -0.6, .high = 3, .avoid = {0}};
  rows.push_back(exact(unary(
      "neg", "", neg, [](double x) { return -x; }, any)));
  rows.push_back(exact(unary("abs", "", binade::abs, Real(std::fabs), off_zero)));
  rows.push_back(exact(unary(
      "square", "", square, [](double x) { return x * x; }, any)));
  rows.push_back(exact(unary("sqrt", "", binade::sqrt, Real(std::sqrt), positive)));
  rows.push_back(unary(
      "rsqrt", "", rsqrt, [](double x) { return 1 / std::sqrt(x); }, positive));
  rows.push_back(exact(unary("reciprocal", "", reciprocal, [](double x) { return 1 / x; },
                             {.low = -3, .high = 3, .avoid = {0}})));
  rows.push_back(unary("exp", "", binade::exp, Real(std::exp), any));
  rows.push_back(unary("log", "", binade::log, Real(std::log),
                       {.low = 0.3, .high = 3, .avoid = {1}, .gap = 0.05}));
  rows.push_back(unary("sin", "", binade::sin, Real(std::sin), any));
  rows.push_back(near_zero(unary("cos", "", binade::cos, Real(std::cos), any), 0.1));
  rows.push_back(unary("tanh", "", binade::tanh, Real(std::tanh), any));
  rows.push_back(unary("sigmoid", "", sigmoid, sigmoid_of, any));
}

void append_activations(std::vector<OpRow>& rows) {
  const Domain any{.low = -3, .high = 3}, off_zero{.low = -0.6, .high = 3, .avoid = {0}};
  rows.push_back(exact(unary(
      "relu", "", relu, [](double x) { return std::max(x, 0.0); }, off_zero)));
  rows.push_back(unary(
      "leaky_relu", "0.25", [](const Tensor& x) { return leaky_relu(x, 0.25); },
      [](double x) { return x > 0 ? x : 0.25 * x; }, off_zero));
  rows.push_back(near_zero(unary(
                               "gelu", "", [](const Tensor& x) { return gelu(x); }, gelu_of, any),
                           0.25));
  rows.push_back(near_zero(unary("gelu_tanh", "", gelu_tanh, gelu_tanh_of, any), 0.25));
  rows.push_back(unary(
      "silu", "", silu, [](double x) { return x * sigmoid_of(x); }, any));
  rows.push_back(unary(
      "softplus", "beta 1", [](const Tensor& x) { return softplus(x); },
      [](double x) { return std::log1p(std::exp(x)); }, any));
  rows.push_back(unary(
      "softplus", "beta 2, threshold 3", [](const Tensor& x) { return softplus(x, 2, 3); },
      [](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; },
      {.low = -3, .high = 3, .avoid = {1.5}}));
  rows.push_back(near_zero(unary(
                               "elu", "alpha 0.5", [](const Tensor& x) { return elu(x, 0.5); },
                               [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, off_zero),
                           0.1));
}

void append_with_numbers(std::vector<OpRow>& rows) {
  rows.push_back(exact(unary(
      "clamp", "-1, 1.5", [](const Tensor& x) { return clamp(x, -1, 1.5); },
      [](double x) { return std::min(std::max(x, -1.0), 1.5); },
      {.low = -3, .high = 3, .avoid = {-1, 1.5}})));
  for (double exponent : {2.0, 3.0, 0.5, -1.5}) {
    const bool whole = exponent > 1;
    OpRow row = unary(
        "pow", "", [exponent](const Tensor& x) { return pow(x, exponent); },
        [exponent](double x) { return std::pow(x, exponent); },
        whole ? Domain{} : Domain{.low = 0.3, .high = 3});
    row.attributes = text("exponent ", exponent);
    row.number = true;
    rows.push_back(row);
  }
  OpRow row = exact(unary(
      "add", "0.75", [](const Tensor& x) { return add(x, 0.75); },
      [](double x) { return x + 0.75; }, {}));
  row.number = true;
  rows.push_back(row);
  row = exact(unary(
      "mul", "-1.25", [](const Tensor& x) { return mul(x, -1.25); },
      [](double x) { return x * -1.25; }, {}));
  row.number = true;
  rows.push_back(row);
  row = exact(unary(
      "div", "-3", [](const Tensor& x) { return div(x, -3); }, [](double x) { return x / -3; },
      {}));
  row.number = true;
  rows.push_back(row);
}

// The mask depends on the seed and the number of elements only, so ones show it.
OpRow dropout_row() {
  const auto seeded = [](const Tensor& x) {
    manual_seed(11);
    return dropout(x, 0.2);
  };
  OpRow row = unary("dropout", "0.2", seeded, [](double x) { return x; }, {});
  row.reference = [seeded](const Arrays& x) {
    const Tensor factor = seeded(ones(x[0].sizes, DType::f64));
    Array y = x[0];
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double f = factor.at(i);
      const bool valid = f == 0 || std::fabs(f - 1.25) < 1e-6;
      y.values[static_cast<size_t>(i)] *= valid ? f : std::numeric_limits<double>::quiet_NaN();
    }
    return Arrays{y};
  };
  row.many_zeros = true;
  row.errors.push_back({"probability above one", [] { dropout(ones({3}), 1.5); }});
  row.errors.push_back({"negative probability", [] { dropout(ones({3}), -0.5); }});
  return row;
}

}  // namespace

std::vector<OpRow> pointwise_rows() {
  std::vector<OpRow> rows;
  append_plain(rows);
  append_activations(rows);
  append_with_numbers(rows);
  rows.push_back(dropout_row());

  const Domain any, positive{.low = 0.3, .high = 2.5};
  const Domain whole{.low = -2, .high = 2, .whole = true, .shift = 0.25};
  const Domain between{.low = -2, .high = 2, .whole = true, .shift = 0.75};
  rows.push_back(binary("add", add, [](double a, double b) { return a + b; }, {any}));
  rows.push_back(binary("sub", sub, [](double a, double b) { return a - b; }, {any}));
  rows.push_back(binary("mul", mul, [](double a, double b) { return a * b; }, {any}));
  rows.push_back(binary("div", div, [](double a, double b) { return a / b; },
                        {any, {.low = -2.5, .high = 2.5, .avoid = {0}}}));
  rows.push_back(binary("pow", pow, Real2(std::pow), {positive, any}));
  rows.back().accuracy = Accuracy::ulps;
  rows.push_back(binary("maximum", maximum, Real2(std::fmax), {whole, between}));
  rows.push_back(binary("minimum", minimum, Real2(std::fmin), {whole, between}));
  rows.push_back(compare("eq", eq, [](double a, double b) { return double(a == b); }));
  rows.push_back(compare("ne", ne, [](double a, double b) { return double(a != b); }));
  rows.push_back(compare("lt", lt, [](double a, double b) { return double(a < b); }));
  rows.push_back(compare("le", le, [](double a, double b) { return double(a <= b); }));
  rows.push_back(compare("gt", gt, [](double a, double b) { return double(a > b); }));
  rows.push_back(compare("ge", ge, [](double a, double b) { return double(a >= b); }));
  return rows;
}

}  // namespace binade::op_table
