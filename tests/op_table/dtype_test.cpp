// Dtypes: gradients in f32, f16 and bf16 against the CPU's in f64 from the same rounded inputs;
// integer and bool operands give the exact result or a clear error.
#include <tests/op_table/compare.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace binade::op_table {
namespace {

class Dtype : public testing::TestWithParam<size_t> {};

void compare_gradients(const OpRow& row, const Sample& sample, DType dtype) {
  const Tensors outputs = row.function(sample.views);
  const Tensors upstream = random_upstream(outputs, sample.seed);
  const Result got = run_with_gradient(row, sample, upstream);
  Tensors upstream64;
  double largest_upstream = 0;
  for (const Tensor& u : upstream) {
    upstream64.push_back(u.to(Device{}).to(DType::f64));
    largest_upstream = std::max(largest_upstream, largest_magnitude(to_array(u)));
  }
  const Sample sample64 = converted(row, sample, DType::f64, Device{});
  const Result want = run_with_gradient(row, sample64, upstream64);
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    ASSERT_EQ(got.gradients[i].defined(), want.gradients[i].defined()) << i << ": " << sample.label;
    if (!got.gradients[i].defined()) {
      continue;
    }
    const Array expected = to_array(want.gradients[i]);
    const double terms = std::max(
        1.0, 8.0 * double(upstream[0].numel()) / double(std::max<int64_t>(1, expected.numel())));
    const double tolerance =
        sum_tolerance(dtype, terms, std::max(largest_magnitude(expected), largest_upstream / 8));
    for (int64_t j = 0; j < expected.numel(); ++j) {
      const double value = got.gradients[i].at(j), wanted = expected.values[size_t(j)];
      ASSERT_TRUE(close(value, wanted, tolerance))
          << "gradient of input " << i << ", element " << j << " is " << value << ", expected "
          << wanted << " within " << tolerance << ": " << sample.label;
    }
  }
}

class DtypeGradient : public testing::TestWithParam<size_t> {};

TEST_P(DtypeGradient, MatchesF64) {
  const OpRow& row = op_table()[GetParam()];
  const AlgorithmGuard guard(row);
  uint64_t seed = 1;
  for (const Shapes& shapes : row.shapes) {
    for (const std::vector<Layout>& layouts : layout_choices(shapes, false)) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const Sample sample = make_sample(row, shapes, layouts, dtype, seed++);
        try {
          compare_gradients(row, sample, dtype);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what() << ": " << sample.label;
        }
      }
    }
  }
}

TEST_P(Dtype, IntegersAreExactOrRefused) {
  const OpRow& row = op_table()[GetParam()];
  uint64_t seed = 1;
  for (const Shapes& shapes : row.shapes) {
    for (DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean}) {
      const Sample sample =
          make_sample(row, shapes, layout_choices(shapes).back(), dtype, seed++, true);
      Tensors got;
      try {
        got = row.function(sample.views);
      } catch (const Error& error) {
        EXPECT_TRUE(names_op(error, row)) << error.what() << ": " << sample.label;
        EXPECT_FALSE(row.any_dtype) << error.what() << ": " << sample.label;
        continue;
      }
      const Arrays expected = row.reference(sample.values);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(mismatch(row, sample, got[i], expected[i]), "") << sample.label;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Dtype,
                         testing::ValuesIn(row_indices([](const OpRow&) { return true; })),
                         [](const auto& info) { return row_name(info.param); });
INSTANTIATE_TEST_SUITE_P(OpTable, DtypeGradient,
                         testing::ValuesIn(row_indices([](const OpRow& row) {
                           return row.differentiable;
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
