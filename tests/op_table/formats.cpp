// Rows of the format lab. The references compute with the tables and formulas of the formats, not
// with the rounding of the kernels: the nearest value is searched.
#include <binade/core/ops/format.h>
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

// The nearest value of a format by its codes; ties go to the even code.
double searched(const NumberFormat& format, double x) {
  if (std::isnan(x)) {
    return x;
  }
  const double a = std::fabs(x);
  double best = 0;
  for (uint64_t code = 0; code <= format.encode(format.max()); ++code) {
    const double value = format.decode(code);
    const double gap = std::fabs(value - a), least = std::fabs(best - a);
    if (gap < least || (gap == least && code % 2 == 0)) {
      best = value;
    }
  }
  return std::copysign(best, x);
}

OpRow round_row(const std::string& scheme_name, const std::function<Array(const Array&)>& want) {
  OpRow row;
  row.name = "round_to_format";
  row.attributes = scheme_name;
  row.shapes = {{{5, 7}}, {{}}, {{0, 3}}, {{2, 3, 2, 40}}, {{33}}, {{2, 1, 3, 2, 2}}};
  row.domains = {{.low = -30, .high = 30}};
  row.function = [scheme = format_scheme(scheme_name)](const Tensors& x) {
    return Tensors{round_to_format(x[0], scheme)};
  };
  row.reference = [want](const Arrays& x) { return Arrays{want(x[0])}; };
  row.differentiable = false;  // its gradient passes straight through, unlike its differences
  row.many_zeros = true;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  const FormatScheme scheme = format_scheme(scheme_name);
  row.errors = {{"undefined operand", [scheme] { round_to_format(Tensor(), scheme); }},
                {"integer operand", [scheme] { round_to_format(ones({3}, DType::i64), scheme); }},
                {"delayed scale without a value",
                 [] { round_to_format(ones({3}), format_scheme("e4m3fn/delayed=4")); }}};
  return row;
}

Array in_mx_blocks(const Array& x, const NumberFormat& format, int64_t block) {
  Array y = x;
  const int64_t length = x.dim() == 0 ? 1 : x.sizes[x.dim() - 1];
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t row = i / length * length, first = row + i % length / block * block;
    double amax = 0;
    for (int64_t k = first; k < std::min(first + block, row + length); ++k) {
      amax = std::max(amax, std::fabs(x.values[size_t(k)]));
    }
    const double power = std::floor(std::log2(amax)) - std::floor(std::log2(format.max()));
    const double scale = amax == 0 ? 1 : std::exp2(power);
    y.values[size_t(i)] = scale * searched(format, x.values[size_t(i)] / scale);
  }
  return y;
}

OpRow accumulated_row() {
  OpRow row;
  row.name = "accumulated_matmul";
  row.shapes = {{{3, 5}, {5, 4}}, {{1, 33}, {33, 2}}, {{4, 1}, {1, 3}}, {{0, 3}, {3, 2}}};
  row.domains = {{.low = -8, .high = 8, .whole = true}};
  const Accumulation sum{.format = number_format("e5m3:overflow=saturate")};
  row.function = [sum](const Tensors& x) { return Tensors{accumulated_matmul(x[0], x[1], sum)}; };
  row.reference = [format = sum.format](const Arrays& x) {
    return Arrays{generate({x[0].sizes[0], x[1].sizes[1]}, [&](const Dims& at) {
      double total = 0;
      for (int64_t i = 0; i < x[0].sizes[1]; ++i) {
        total = searched(format, total + x[0].at({at[0], i}) * x[1].at({i, at[1]}));
      }
      return total;
    })};
  };
  row.differentiable = false;  // gradients are rounded sums, which differences do not find
  row.many_zeros = true;
  row.large = {{65, 33}, {33, 40}};
  row.timed = {{1024, 64}, {64, 64}};
  row.errors = {{"undefined operand",
                 [sum] {
                   accumulated_matmul(Tensor(), ones({2, 2}), sum);
                 }},
                {"other inner size",
                 [sum] {
                   accumulated_matmul(ones({2, 3}), ones({2, 2}), sum);
                 }},
                {"a vector",
                 [sum] {
                   accumulated_matmul(ones({3}), ones({3, 2}), sum);
                 }},
                {"integers",
                 [sum] {
                   accumulated_matmul(ones({2, 2}, DType::i64), ones({2, 2}, DType::i64), sum);
                 }},
                {"chunks of 0", [sum] {
                   Accumulation none = sum;
                   none.chunk = 0;
                   accumulated_matmul(ones({2, 2}), ones({2, 2}), none);
                 }}};
  return row;
}

}  // namespace

std::vector<OpRow> format_rows() {
  const auto each = [](const char* name) {
    return [format = number_format(name)](const Array& x) {
      return map(x, [&](double v) { return searched(format, v); });
    };
  };
  const auto blocks = [](const char* name, int64_t block) {
    return [format = number_format(name), block](const Array& x) {
      return in_mx_blocks(x, format, block);
    };
  };
  return {round_row("e4m3fn", each("e4m3fn")),  //
          round_row("e5m2", each("e5m2")), round_row("mxfp8", blocks("e4m3fn", 32)),
          round_row("mxfp4", blocks("e2m1", 32)), accumulated_row()};
}

}  // namespace binade::op_table
