// Rows of the pointwise ops. The rows of the ops that kernels/pointwise/pointwise.h lists are made
// from the cases of tests/kernels/pointwise.
#include <tests/kernels/pointwise/binary_cases.h>
#include <tests/kernels/pointwise/unary_cases.h>
#include <tests/op_table/pointwise_row.h>

#include <binade/core/tensor/create.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace binade::op_table {
namespace {

using kernels::Binary;
using kernels::Unary;
using UnaryOp = std::function<Tensor(const Tensor&)>;

// Quotients that are far from whole numbers.
const Domain kDividend{.low = -6, .high = 6, .whole = true, .shift = 0.5};
const Domain kDivisor{.low = -3, .high = 3, .avoid = {0}, .whole = true, .divisor = true};

// The public op of this name, with the default of its option; none for operations without an op.
UnaryOp plain_op(Unary op) {
  switch (op) {
#define BINADE_CASE(name, ...) \
  case Unary::name: return [](const Tensor& x) { return binade::name(x); };
    BINADE_UNARY_PLAIN_OPS(BINADE_CASE)
    BINADE_UNARY_OPTION_OPS(BINADE_CASE)
#undef BINADE_CASE
    default: return {};
  }
}

// The op with a value of its option, and "option = value".
UnaryOp op_with_option(Unary op, double value, std::string& attributes) {
  switch (op) {
#define BINADE_CASE(name, Functor, saved, code, op_class, option) \
  case Unary::name:                                               \
    attributes = text(#option " = ", value);                      \
    return [value](const Tensor& x) { return binade::name(x, value); };
    BINADE_UNARY_OPTION_OPS(BINADE_CASE)
#undef BINADE_CASE
    default: return {};
  }
}

BinaryOp plain_op(Binary op) {
  switch (op) {
#define BINADE_CASE(name, ...) \
  case Binary::name: return binade::name;
    BINADE_BINARY_OPS(BINADE_CASE)
#undef BINADE_CASE
  }
  return nullptr;
}

OpRow row_of(const kernels::UnaryCase& c, const UnaryOp& op, double alpha) {
  OpRow row =
      unary(to_string(c.op), "", op, [c, alpha](double x) { return c.formula(x, alpha, c.beta); },
            {.low = c.low, .high = c.high, .avoid = c.kinks});
  row.accuracy = c.exact ? Accuracy::exact : Accuracy::ulps;
  row.floor = c.floor;
  row.ulps = c.ulps;
  return row;
}

// The rows of the ops that kernels/pointwise/pointwise.h lists.
void append_listed(std::vector<OpRow>& rows) {
  for (const kernels::UnaryCase& c : kernels::unary_cases()) {
    if (const UnaryOp op = plain_op(c.op)) {
      rows.push_back(row_of(c, op, c.alpha));
    }
    std::string attributes;
    if (const UnaryOp op = op_with_option(c.op, kernels::kOtherOption, attributes)) {
      rows.push_back(row_of(c, op, kernels::kOtherOption));
      rows.back().attributes = attributes;
    }
  }
  for (const kernels::BinaryCase& c : kernels::binary_cases()) {
    const Domain a{.low = c.low, .high = c.high};
    const Domain b{
        .low = c.b_low, .high = c.b_high, .avoid = c.b_kinks, .divisor = !c.b_kinks.empty()};
    const Domain whole{.low = -2, .high = 2, .whole = true, .shift = 0.25};
    const Domain between{.low = -2, .high = 2, .whole = true, .shift = 0.75};
    OpRow row = binary(to_string(c.op), plain_op(c.op), c.f, {a, b});
    if (c.apart) {
      row.domains = {whole, between};
    }
    if (c.jumps) {
      row.domains = {kDividend, kDivisor};
    }
    row.accuracy = c.exact ? Accuracy::exact : Accuracy::ulps;
    row.floor = c.floor;
    row.ulps = c.ulps;
    rows.push_back(row);
  }
}

void append_softplus(std::vector<OpRow>& rows) {
  rows.push_back(unary(
      "softplus", "beta 1", [](const Tensor& x) { return softplus(x); },
      [](double x) { return std::log1p(std::exp(x)); }, {.low = -3, .high = 3}));
  rows.push_back(unary(
      "softplus", "beta 2, threshold 3", [](const Tensor& x) { return softplus(x, 2, 3); },
      [](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; },
      {.low = -3, .high = 3, .avoid = {1.5}}));
}

// An op of a tensor and a number: it takes integers and bool too.
OpRow with_number(const char* name, const char* attributes, const UnaryOp& op,
                  const std::function<double(double)>& f, const Domain& domain = {}) {
  OpRow row = exact(unary(name, attributes, op, f, domain));
  row.number = true;
  row.errors = {undefined_operand(op)};
  return row;
}

void append_divisions(std::vector<OpRow>& rows) {
  using Division = Tensor (*)(const Tensor&, double);
  const auto add_row = [&](const char* name, Division op, Real2 f) {
    rows.push_back(with_number(
        name, "-3", [op](const Tensor& x) { return op(x, -3); }, [f](double x) { return f(x, -3); },
        kDividend));
    rows.back().errors.push_back(
        {"an integer over the number 0", [op] { op(ones({3}, DType::i64), 0); }});
  };
  add_row("floor_divide", floor_divide, kernels::floor_quotient);
  rows.back().many_zeros = true;
  add_row("remainder", remainder, kernels::python_rest);
  add_row("fmod", fmod, [](double a, double b) { return std::fmod(a, b); });
}

void append_with_numbers(std::vector<OpRow>& rows) {
  rows.push_back(exact(unary("neg", "", neg, [](double x) { return -x; }, {})));
  rows.push_back(exact(unary(
      "clamp", "-1, 1.5", [](const Tensor& x) { return clamp(x, -1, 1.5); },
      [](double x) { return std::min(std::max(x, -1.0), 1.5); },
      {.low = -3, .high = 3, .avoid = {-1, 1.5}})));
  for (double exponent : {2.0, 3.0, 0.5, -1.5}) {
    const bool whole = exponent > 1;
    const UnaryOp op = [exponent](const Tensor& x) { return pow(x, exponent); };
    OpRow row = unary(
        "pow", "", op, [exponent](double x) { return std::pow(x, exponent); },
        whole ? Domain{} : Domain{.low = 0.3, .high = 3});
    row.errors = {undefined_operand(op)};
    row.attributes = text("exponent ", exponent);
    row.number = true;
    row.errors.push_back({"a negative power of integers", [] { pow(ones({3}, DType::i64), -1); }});
    row.errors.push_back({"a number beyond u8", [] { pow(ones({3}, DType::u8), 300); }});
    rows.push_back(row);
  }
  // Integers have no negative exponents.
  OpRow powers = binary("pow", pow, [](double a, double b) { return std::pow(a, b); },
                        {{.low = 0.3, .high = 3}, {.low = 0, .high = 3}});
  powers.attributes = "exponents of 0 or more";
  powers.accuracy = Accuracy::ulps;
  powers.errors.push_back({"negative exponents of integers",
                           [] { pow(ones({3}, DType::i32), full({3}, -1, DType::i32)); }});
  powers.errors.push_back(
      {"bool to bool", [] { pow(ones({3}, DType::boolean), ones({3}, DType::boolean)); }});
  rows.push_back(powers);
  rows.push_back(with_number(
      "add", "0.75", [](const Tensor& x) { return add(x, 0.75); },
      [](double x) { return x + 0.75; }));
  rows.push_back(with_number(
      "add", "1", [](const Tensor& x) { return add(x, 1); }, [](double x) { return x + 1; }));
  rows.push_back(with_number(
      "mul", "-1.25", [](const Tensor& x) { return mul(x, -1.25); },
      [](double x) { return x * -1.25; }));
  rows.push_back(with_number(
      "div", "-3", [](const Tensor& x) { return div(x, -3); }, [](double x) { return x / -3; }));
  append_divisions(rows);
}

// The mask depends on the seed and the number of elements only, so an input of ones shows it.
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

// Tests of the kind of a number, and isclose(): bool results.
OpRow kind(const char* name, Tensor (*op)(const Tensor&), double (*f)(double)) {
  OpRow row = exact(unary(name, "", op, f, {}));
  row.any_dtype = true;
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::boolean;
  row.errors = {undefined_operand(op)};
  // The inputs 1, infinity and NaN are made from 1, 0 and -1.
  row.domains = {{.low = -1, .high = 1, .whole = true}};
  row.function = [=](const Tensors& x) {
    const Tensor up = add(x[0], 1), down = mul(x[0], up);
    return Tensors{op(div(up, down))};
  };
  row.reference = [=](const Arrays& x) {
    return Arrays{map(x[0], [=](double v) { return f((v + 1) / (v * (v + 1))); })};
  };
  return row;
}

void append_kinds(std::vector<OpRow>& rows) {
  rows.push_back(exact(unary(
      "nan_to_num", "", [](const Tensor& x) { return nan_to_num(x); }, [](double x) { return x; },
      {})));
  rows.push_back(kind("isnan", isnan, [](double x) { return double(std::isnan(x)); }));
  rows.push_back(kind("isfinite", isfinite, [](double x) { return double(std::isfinite(x)); }));
  rows.push_back(kind("isinf", isinf, [](double x) { return double(std::isinf(x)); }));
  OpRow row = binary(
      "isclose", [](const Tensor& a, const Tensor& b) { return isclose(a, b, 0.25, 0.5, true); },
      [](double a, double b) { return double(std::fabs(a - b) <= 0.5 + 0.25 * std::fabs(b)); },
      {{.low = -2, .high = 2, .whole = true}});
  row.differentiable = false;
  row.many_zeros = true;
  row.any_dtype = true;
  row.output_dtype = DType::boolean;
  row.errors.push_back({"negative tolerance", [] { isclose(ones({3}), ones({3}), -1); }});
  rows.push_back(row);
}

}  // namespace

std::vector<OpRow> pointwise_rows() {
  std::vector<OpRow> rows;
  append_listed(rows);
  append_softplus(rows);
  append_with_numbers(rows);
  rows.push_back(dropout_row());

  append_kinds(rows);
  rows.push_back(compare("eq", eq, [](double a, double b) { return double(a == b); }));
  rows.push_back(compare("ne", ne, [](double a, double b) { return double(a != b); }));
  rows.push_back(compare("lt", lt, [](double a, double b) { return double(a < b); }));
  rows.push_back(compare("le", le, [](double a, double b) { return double(a <= b); }));
  rows.push_back(compare("gt", gt, [](double a, double b) { return double(a > b); }));
  rows.push_back(compare("ge", ge, [](double a, double b) { return double(a >= b); }));
  return rows;
}

}  // namespace binade::op_table
