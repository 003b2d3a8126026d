// Every row, shape, layout and floating dtype against the f64 reference of the rounded inputs.
#include <tests/op_table/compare.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace binade::op_table {
namespace {

class Forward : public testing::TestWithParam<size_t> {};

DType expected_dtype(const OpRow& row, DType dtype) {
  return row.output_dtype.value_or(row.wide_output ? compute_dtype(dtype) : dtype);
}

// Reports samples that would let a wrong op pass: mostly zeros, or inputs without variety.
std::string mistrusted(const OpRow& row, const Sample& sample, const Array& expected) {
  for (Layout layout : sample.layouts) {
    if (layout != Layout::contiguous) {
      return "";  // a stride of 0 repeats values on purpose
    }
  }
  const auto zeros = std::count(expected.values.begin(), expected.values.end(), 0.0);
  if (!row.many_zeros && expected.numel() >= 16 && double(zeros) > 0.3 * double(expected.numel())) {
    return text(zeros, " of ", expected.numel(), " expected values are zero");
  }
  for (size_t i = 0; i < sample.values.size(); ++i) {
    const std::set<double> distinct(sample.values[i].values.begin(), sample.values[i].values.end());
    if (!domain_of(row, i).mask && sample.values[i].numel() >= 8 && distinct.size() < 3) {
      return text("input ", i, " has only ", distinct.size(), " distinct values");
    }
  }
  return "";
}

void check_sample(const OpRow& row, const Sample& sample, DType dtype) {
  for (size_t i = 0; i < sample.views.size(); ++i) {
    ASSERT_EQ(to_array(sample.views[i]).values, sample.values[i].values) << sample.label;
  }
  const Arrays expected = row.reference(sample.values);
  EXPECT_EQ(mistrusted(row, sample, expected[0]), "") << sample.label;
  const Tensors got = row.function(sample.views);
  ASSERT_EQ(got.size(), expected.size()) << sample.label;
  EXPECT_EQ(got[0].dtype(), expected_dtype(row, dtype)) << sample.label;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string wrong = mismatch(row, sample, got[i], expected[i]);
    EXPECT_EQ(wrong, "") << "output " << i << " of " << sample.label;
  }
  for (size_t i = 0; i < sample.views.size(); ++i) {
    ASSERT_EQ(to_array(sample.views[i]).values, sample.values[i].values)
        << "the op changed input " << i << ": " << sample.label;
  }
}

TEST_P(Forward, MatchesReference) {
  const OpRow& row = op_table()[GetParam()];
  const AlgorithmGuard guard(row);
  uint64_t seed = 1;
  for (const Shapes& shapes : row.shapes) {
    for (const std::vector<Layout>& layouts : layout_choices(shapes)) {
      for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        const Sample sample = make_sample(row, shapes, layouts, dtype, seed++);
        try {
          check_sample(row, sample, dtype);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what() << ": " << sample.label;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Forward,
                         testing::ValuesIn(row_indices([](const OpRow&) { return true; })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
