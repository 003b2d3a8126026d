// Contractions of random numbers; checks every element of results and gradients:
//   |got - exact| <= u_out |exact| + 2 K u_acc sum |a| |b|, plus half the smallest positive number
// of the dtype. K is the number of products, u_out and u_acc the unit roundoff of the output and of
// the accumulator, and `exact` the f64 result of the rounded inputs. If an algorithm transforms its
// inputs, all elements use the largest sum |a| |b| of the tensor, amplified as the row says.
#include <tests/op_table/compare.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

class Bound : public testing::TestWithParam<size_t> {};

Tensors magnitudes(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& t : tensors) {
    result.push_back(
        to_tensor(map(to_array(t), [](double x) { return std::fabs(x); }), DType::f64));
  }
  return result;
}

Tensor sizes_of_terms(const OpRow& row, const Tensor& sums) {
  if (!row.algorithm) {
    return sums;
  }
  const double largest = row.amplification * largest_magnitude(to_array(sums));
  return to_tensor(map(to_array(sums), [=](double) { return largest; }), DType::f64);
}

void expect_within(const Tensor& got, const Tensor& exact, const Tensor& sizes_of_terms,
                   double terms, DType dtype, const std::string& what) {
  const double u_out = epsilon(dtype) / 2, u_acc = epsilon(compute_dtype(dtype)) / 2;
  for (int64_t i = 0; i < exact.numel(); ++i) {
    const double want = exact.at(i);
    const double bound = smallest_step(dtype) / 2 + u_out * std::fabs(want) +
                         2 * terms * u_acc * sizes_of_terms.at(i);
    ASSERT_LE(std::fabs(got.at(i) - want), bound)
        << "element " << i << " is " << got.at(i) << ", expected " << want << ", of the " << what;
  }
}

void check_sample(const OpRow& row, const Sample& sample, double depth, DType dtype) {
  const Tensors upstream = random_upstream(row.function(sample.views), sample.seed);
  const Result got = run_with_gradient(row, sample, upstream);
  const Sample wide = converted(row, sample, DType::f64);
  const Result exact = run_with_gradient(row, wide, {to_tensor(to_array(upstream[0]), DType::f64)});
  Sample positive = wide;
  positive.bases = magnitudes(wide.bases);
  for (size_t i = 0; i < positive.bases.size(); ++i) {
    positive.views[i] = present(wide.layouts[i], positive.bases[i], wide.views[i].sizes());
  }
  const Result terms = run_with_gradient(row, positive, magnitudes(upstream));
  expect_within(got.outputs[0], exact.outputs[0], sizes_of_terms(row, terms.outputs[0]), depth,
                dtype, "result: " + sample.label);
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    const double products = double(exact.outputs[0].numel()) * depth;
    const double length = products / double(std::max<int64_t>(1, exact.gradients[i].numel()));
    expect_within(got.gradients[i], exact.gradients[i], sizes_of_terms(row, terms.gradients[i]),
                  std::max(2.0, length), dtype, text("gradient of input ", i, ": ", sample.label));
  }
}

TEST_P(Bound, ErrorsStayWithin) {
  const OpRow& row = op_table()[GetParam()];
  const AlgorithmGuard guard(row);
  std::vector<Shapes> all = row.shapes;
  all.insert(all.end(), row.exact_shapes.begin(), row.exact_shapes.end());
  uint64_t seed = 1;
  for (const Shapes& shapes : all) {
    const auto choices = layout_choices(shapes, false);
    for (const auto& layouts : {choices.front(), choices.back()}) {
      for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        const Sample sample = make_sample(row, shapes, layouts, dtype, seed++);
        check_sample(row, sample, double(row.depth(shapes)), dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Bound, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return row.depth != nullptr;
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
