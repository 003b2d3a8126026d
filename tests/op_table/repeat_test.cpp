// Repeatability: forward and backward give the same bits twice and at 1, 2 and 4 threads.
#include <tests/op_table/sample.h>

#include <binade/kernels/base/parallel.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <vector>

namespace binade::op_table {
namespace {

class Repeat : public testing::TestWithParam<size_t> {
 protected:
  ~Repeat() override { kernels::set_threads(0); }
};

Result run(const OpRow& row, const Sample& sample, const Tensors& upstream) {
  if (row.differentiable) {
    return run_with_gradient(row, sample, upstream);
  }
  return {row.function(sample.views), {}};
}

void expect_same(const Result& got, const Result& first, const std::string& label) {
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    EXPECT_TRUE(same_bits(got.outputs[i], first.outputs[i])) << "output " << i << ": " << label;
  }
  for (size_t i = 0; i < first.gradients.size(); ++i) {
    EXPECT_TRUE(same_bits(got.gradients[i], first.gradients[i]))
        << "gradient " << i << ": " << label;
  }
}

bool on_cpu() { return kernels::test_device().is_cpu(); }

// A device's results should not depend on the host's threads: one more run detects a mistake.
std::vector<int> thread_counts() {
  return on_cpu() ? std::vector<int>{1, 2, 4} : std::vector<int>{4};
}

// A device uses the large shape in its memory order, so that many blocks work, and the first shape
// in its strangest layout, each in one dtype.
std::vector<std::vector<Layout>> repeat_layouts(const Shapes& shapes, bool large, DType dtype) {
  const auto choices = layout_choices(shapes);
  if (on_cpu()) {
    return {choices.front(), choices.back()};
  }
  if (large != (dtype == DType::f32)) {
    return {};
  }
  return {large ? choices.front() : choices.back()};
}

TEST_P(Repeat, SameBitsAtAnyThreadCount) {
  const OpRow& row = op_table()[GetParam()];
  const AlgorithmGuard guard(row);
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const bool large : {true, false}) {
      const Shapes& shapes = large ? row.large : row.shapes[0];
      for (const std::vector<Layout>& layouts : repeat_layouts(shapes, large, dtype)) {
        const Sample sample = make_sample(row, shapes, layouts, dtype, 7);
        kernels::set_threads(1);
        const Tensors upstream = random_upstream(row.function(sample.views), 7);
        const Result first = run(row, sample, upstream);
        for (int threads : thread_counts()) {
          kernels::set_threads(threads);
          expect_same(run(row, sample, upstream), first, text(sample.label, " threads=", threads));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Repeat, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return on_cpu() || row.algorithm == nullptr;  // those are the CPU's
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
