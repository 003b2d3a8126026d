#include <tests/op_table/compare.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

// Distance between neighbours of the dtype near x.
double ulp(DType dtype, double x) {
  const double step = x == 0 ? 0 : std::ldexp(epsilon(dtype), std::ilogb(x));
  return std::max(step, smallest_step(dtype));
}

double terms_of(const Sample& sample, const Array& expected) {
  int64_t most = 1;
  for (const Array& value : sample.values) {
    most = std::max(most, value.numel());
  }
  return std::max(1.0, double(most) / double(std::max<int64_t>(1, expected.numel())));
}

}  // namespace

double smallest_step(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1074;
    case DType::f32: return 0x1p-149;
    case DType::f16: return 0x1p-24;
    default: return 0x1p-133;
  }
}

double sum_tolerance(DType dtype, double terms, double largest) {
  const double root = std::sqrt(terms);
  const double unit =
      is_half(dtype) ? epsilon(dtype) + epsilon(DType::f32) * root : epsilon(dtype) * root;
  return 8 * unit * largest;
}

double largest_magnitude(const Array& x) {
  double largest = 0;
  for (double value : x.values) {
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  }
  return largest;
}

bool close(double got, double expected, double tolerance) {
  if (!std::isfinite(expected) || !std::isfinite(got)) {
    return got == expected || (std::isnan(got) && std::isnan(expected));
  }
  return std::fabs(got - expected) <= tolerance;
}

std::string mismatch(const OpRow& row, const Sample& sample, const Tensor& got,
                     const Array& expected) {
  if (!(got.sizes() == expected.sizes)) {
    return text("result has sizes ", got.sizes(), ", expected ", expected.sizes);
  }
  const DType dtype = got.dtype();
  const bool exact = row.accuracy == Accuracy::exact || !is_floating(dtype);
  double sums = 0;
  if (row.accuracy == Accuracy::sums && is_floating(dtype)) {
    const double input = largest_magnitude(sample.values[0]) / 4;
    sums = sum_tolerance(dtype, terms_of(sample, expected),
                         std::max(largest_magnitude(expected), input));
  }
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double want = expected.values[static_cast<size_t>(i)], value = got.at(i);
    double tolerance = sums;
    if (row.accuracy == Accuracy::ulps && is_floating(dtype)) {
      tolerance =
          (is_half(dtype) ? 1 : row.ulps) * ulp(dtype, std::max(std::fabs(want), row.floor));
    }
    if (!close(value, exact ? round_to(dtype, want) : want, exact ? 0 : tolerance)) {
      return text("element ", i, " is ", value, ", expected ", want, " within ",
                  exact ? 0 : tolerance);
    }
  }
  return "";
}

bool names_op(const Error& error, const OpRow& row) {
  const std::string text = error.what(), first = text.substr(0, text.find(':'));
  return first.find(row.name) != std::string::npos ||
         (first.size() >= 5 && row.name.find(first) != std::string::npos);  // "pool2d"
}

}  // namespace binade::op_table
