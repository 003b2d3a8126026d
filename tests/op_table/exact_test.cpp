// Contractions of integers: all sums are exact in float, so results and gradients must equal the
// reference, rounded once, in every dtype and layout.
#include <tests/op_table/sample.h>

#include <gtest/gtest.h>

namespace binade::op_table {
namespace {

class Exact : public testing::TestWithParam<size_t> {};

void expect_equal(const Tensor& got, const Array& expected, DType rounding,
                  const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes) << what;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    ASSERT_EQ(got.at(i), round_to(rounding, expected.values[static_cast<size_t>(i)]))
        << "element " << i << " of the " << what;
  }
}

void check_sample(const OpRow& row, const Sample& sample, const Array& expected,
                  const Result& gradients, const Tensors& upstream, DType dtype) {
  Tensors rounded;
  for (const Tensor& u : upstream) {
    rounded.push_back(to_tensor(to_array(u), dtype));
  }
  const Result got = run_with_gradient(row, sample, rounded);
  expect_equal(got.outputs[0], expected, dtype, "result: " + sample.label);
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    expect_equal(got.gradients[i], to_array(gradients.gradients[i]), dtype,
                 text("gradient of input ", i, ": ", sample.label));
  }
}

TEST_P(Exact, IntegersAreExact) {
  const OpRow& row = op_table()[GetParam()];
  const AlgorithmGuard guard(row);
  uint64_t seed = 1;
  for (const Shapes& shapes : row.exact_shapes) {
    const auto choices = layout_choices(shapes);
    for (const auto& layouts : {choices.front(), choices.back()}) {
      const Sample sample = make_sample(row, shapes, layouts, DType::f64, seed, true);
      const Array expected = row.reference(sample.values)[0];
      const Tensors upstream = random_upstream(row.function(sample.views), seed++, true);
      const Result gradients = run_with_gradient(row, sample, upstream);
      for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        Sample narrow = converted(row, sample, dtype);
        narrow.label += text(" as ", dtype);
        check_sample(row, narrow, expected, gradients, upstream, dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Exact, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return row.depth != nullptr && !row.algorithm;
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
