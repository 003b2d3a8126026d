// Checks one product with operands in any memory order, element by element against sums in double:
// exact on integers, within the rounding bound on random data.
#pragma once
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <tests/kernels/support/strided_array.h>

#include <cmath>

namespace binade::kernels {

struct GemmCase {
  int64_t m, n, k;
  DType dtype = DType::f32;
  bool integers = true, bias = false, relu = false, accumulate = false;
  std::vector<int> a = {0, 1}, b = {0, 1}, y = {0, 1};  // memory orders
  int64_t gap = 0;
  bool gelu = false;
  int64_t batch = 0;  // 0: matrices
  bool share_a = false, share_b = false;
};

// An operand of a case: [rows, columns] or [batch, rows, columns], or one matrix for the batch.
class GemmOperand {
 public:
  GemmOperand(const GemmCase& c, int64_t rows, int64_t columns, const std::vector<int>& order,
              bool shared)
      : batch_(c.batch),
        shared_(shared),
        array_(c.dtype, c.batch && !shared ? Dims{c.batch, rows, columns} : Dims{rows, columns},
               c.batch && !shared ? std::vector<int>{0, order[0] + 1, order[1] + 1} : order,
               c.gap) {}
  StridedArray& array() { return array_; }
  View view() {
    const View view = array_.view();
    return shared_ && batch_
               ? test_view(view.data, view.dtype, {batch_, view.size(0), view.size(1)},
                           {0, view.strides[0], view.strides[1]})
               : view;
  }
  // Elements in row-major order.
  std::vector<double> values() const {
    const std::vector<double> matrix = array_.values();
    std::vector<double> values;
    for (int64_t i = 0; i < (shared_ ? std::max<int64_t>(batch_, 1) : 1); ++i) {
      values.insert(values.end(), matrix.begin(), matrix.end());
    }
    return values;
  }

 private:
  int64_t batch_;
  bool shared_;
  StridedArray array_;
};

inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// For a row a of k elements and b [k, n]: sums = y + a b, and sums of magnitudes. y may be null.
inline void add_row(const double* a, const double* b, int64_t k, const double* y,
                    std::vector<double>& sums, std::vector<double>& magnitudes) {
  const size_t n = sums.size();
  double* sum = sums.data();
  double* magnitude = magnitudes.data();
  for (size_t j = 0; j < n; ++j) {
    sum[j] = y ? y[j] : 0;
    magnitude[j] = std::fabs(sum[j]);
  }
  for (int64_t p = 0; p < k; ++p) {
    const double factor = a[p];
    const double* row = b + p * static_cast<int64_t>(n);
    for (size_t j = 0; j < n; ++j) {
      const double product = factor * row[j];
      sum[j] += product;
      magnitude[j] += std::fabs(product);
    }
  }
}

// Runs the case and expects every element within its error bound: zero for integers.
inline void run(const GemmCase& c) {
  SCOPED_TRACE(text(c.batch, " of ", c.m, "x", c.n, "x", c.k, " ", c.dtype, c.bias ? " bias" : "",
                    c.relu ? " relu" : "", c.gelu ? " gelu" : "", c.accumulate ? " accumulate" : "",
                    " a", c.a[0], " b", c.b[0], " y", c.y[0], " gap ", c.gap));
  GemmOperand a(c, c.m, c.k, c.a, c.share_a), b(c, c.k, c.n, c.b, c.share_b);
  GemmOperand y(c, c.m, c.n, c.y, false);
  StridedArray bias(c.dtype, {c.n});
  a.array().randomize(1, c.integers);
  b.array().randomize(2, c.integers);
  bias.randomize(3, c.integers);
  y.array().randomize(4, c.integers);
  const std::vector<double> as = a.values(), bs = b.values(), before = y.values();
  const View no_view{};
  const View bias_view = bias.view();
  gemm({.a = a.view(),
        .b = b.view(),
        .y = y.view(),
        .epilogue = {.bias = c.bias ? bias_view : no_view,
                     .activation = c.relu   ? Activation::relu
                                   : c.gelu ? Activation::gelu_tanh
                                            : Activation::none,
                     .accumulate = c.accumulate}});
  const std::vector<double> got = y.values();
  const double accumulate_unit = unit_roundoff(compute_dtype(c.dtype));
  int failures = 0;
  std::vector<double> sums(static_cast<size_t>(c.n)), magnitudes(sums);
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
    const int64_t matrix = i / (c.m * c.n), row = i / c.n % c.m, column = i % c.n;
    const auto at = static_cast<size_t>(i);
    if (column == 0) {
      add_row(as.data() + (matrix * c.m + row) * c.k, bs.data() + matrix * c.k * c.n, c.k,
              c.accumulate ? before.data() + i : nullptr, sums, magnitudes);
    }
    double sum = sums[static_cast<size_t>(column)];
    double magnitude = magnitudes[static_cast<size_t>(column)];
    if (c.bias) {
      sum += bias.get({column});
      magnitude += std::fabs(bias.get({column}));
    }
    const double want = c.relu ? std::max(sum, 0.0) : c.gelu ? gelu_tanh(sum) : sum;
    const bool exact = c.integers && !c.gelu && std::fabs(want) <= 1 / epsilon(c.dtype);
    // cuBLASLt rounds a 16-bit product before it adds the old y.
    const double rounded = c.accumulate && is_half(c.dtype) && gemm_provider() != "own"
                               ? std::fabs(before[at]) + std::fabs(want)
                               : 0;
    const double bound =
        exact ? 0
              : unit_roundoff(c.dtype) * (std::fabs(want) + rounded) * 1.001 +
                    1e-7 * is_half(c.dtype) +
                    2 * static_cast<double>(c.k + (c.gelu ? 16 : 2)) * accumulate_unit * magnitude;
    if (!(std::fabs(got[at] - want) <= bound) && ++failures <= 3) {
      ADD_FAILURE() << "at " << matrix << "," << row << "," << column << ": got " << got[at]
                    << ", expected " << want;
    }
  }
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(y.array().gaps_untouched());
}

}  // namespace binade::kernels
