// Numeric gradients in f64, with random upstream gradients: every differentiable row in its shapes
// (broadcasts, 0-d, sizes of 1, empty, 5-d) and memory layouts, with non-contiguous and stride-0
// upstream gradients, operands or results without a gradient, and one tensor given twice.
#include <tests/kernels/support/test_device.h>
#include <tests/op_table/sample.h>

#include <binade/core/autograd/gradcheck.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace binade::op_table {
namespace {

class Gradient : public testing::TestWithParam<size_t> {};

enum class Upstream : uint8_t { plain, transposed, sliced, expanded };

// Wraps an output so that its upstream gradient arrives in the wanted form.
Tensor with_upstream(const Tensor& y, Upstream form) {
  const int last = y.dim() - 1;
  switch (form) {
    case Upstream::plain: return y;
    case Upstream::transposed: return y.dim() >= 2 ? transpose(y, 0, last) : y;
    case Upstream::sliced: return y.dim() >= 1 ? cat({y, mul(y, 0.5)}, last) : y;
    case Upstream::expanded: return y.dim() >= 1 ? sum(y, {last}) : y;
  }
  return y;
}

struct Pattern {
  Upstream upstream = Upstream::plain;
  int without_grad = -1;      // this input does not require a gradient
  int without_upstream = -1;  // this output gets none
  bool twice = false;         // input 0 is given in the place of every input
};

bool differentiable(const OpRow& row, const Tensor& base, size_t input) {
  return is_floating(base.dtype()) && !domain_of(row, input).fixed;
}

// The emulated device runs only a part: the kernel tests have the layouts, and each number of a
// numeric gradient costs two runs of the op, so random directions replace single elements.
bool in_part() { return !kernels::test_device().is_cpu(); }

void check_gradient(const OpRow& row, const Sample& sample, const Pattern& pattern) {
  Tensors inputs;
  for (size_t i = 0; i < sample.bases.size(); ++i) {
    inputs.push_back(sample.bases[i].detach());
    const bool fixed = int(i) == pattern.without_grad || (pattern.twice && i > 0);
    if (differentiable(row, inputs[i], i) && !fixed) {
      inputs[i].require_grad();
    }
  }
  const auto function = [&](const Tensors& bases) {
    Tensors views;
    for (size_t i = 0; i < bases.size(); ++i) {
      views.push_back(present(sample.layouts[pattern.twice ? 0 : i], bases[pattern.twice ? 0 : i],
                              sample.views[i].sizes()));
    }
    const Tensors outputs = row.function(views);
    Tensors flat;
    for (size_t i = 0; i < std::min(outputs.size(), row.outputs_with_gradient); ++i) {
      if (int(i) != pattern.without_upstream) {
        flat.push_back(reshape(with_upstream(outputs[i], pattern.upstream), {-1}));
      }
    }
    return flat.size() == 1 ? flat[0] : cat(flat, 0);
  };
  try {
    gradcheck(function, inputs, {.seed = sample.seed, .directions = in_part() ? 2 : 0});
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << ": " << sample.label
                  << " upstream=" << static_cast<int>(pattern.upstream)
                  << " without_grad=" << pattern.without_grad
                  << " without_upstream=" << pattern.without_upstream << " twice=" << pattern.twice;
  }
}

std::vector<std::vector<Layout>> gradient_layouts(const Shapes& shapes) {
  std::vector<std::vector<Layout>> choices = layout_choices(shapes);
  return in_part() ? std::vector{choices.front(), choices.back()} : choices;
}

TEST_P(Gradient, ShapesAndLayouts) {
  const OpRow& row = op_table()[GetParam()];
  uint64_t seed = 1;
  for (const Shapes& shapes : row.shapes) {
    for (const std::vector<Layout>& layouts : gradient_layouts(shapes)) {
      check_gradient(row, make_sample(row, shapes, layouts, DType::f64, seed++), {});
    }
  }
}

TEST_P(Gradient, UpstreamForms) {
  const OpRow& row = op_table()[GetParam()];
  uint64_t seed = 1001;
  for (const Shapes& shapes : row.shapes) {
    const auto layouts = layout_choices(shapes).back();
    for (Upstream form : {Upstream::transposed, Upstream::sliced, Upstream::expanded}) {
      check_gradient(row, make_sample(row, shapes, layouts, DType::f64, seed++),
                     {.upstream = form});
    }
    if (in_part()) {
      break;
    }
  }
}

TEST_P(Gradient, OneOperandWithout) {
  const OpRow& row = op_table()[GetParam()];
  const Shapes& shapes = row.shapes[0];
  const Sample sample = make_sample(row, shapes, layout_choices(shapes)[0], DType::f64, 2001);
  int candidates = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    candidates += differentiable(row, sample.bases[i], i);
  }
  for (size_t i = 0; i < shapes.size() && candidates > 1; ++i) {
    if (differentiable(row, sample.bases[i], i)) {
      check_gradient(row, sample, {.without_grad = static_cast<int>(i)});
    }
  }
  EXPECT_GE(candidates, 1) << sample.label;
}

TEST_P(Gradient, OneResultWithout) {
  const OpRow& row = op_table()[GetParam()];
  const Sample sample =
      make_sample(row, row.shapes[0], layout_choices(row.shapes[0])[0], DType::f64, 4001);
  const size_t outputs = std::min(row.function(sample.views).size(), row.outputs_with_gradient);
  for (size_t i = 0; i < outputs && outputs > 1; ++i) {
    check_gradient(row, sample, {.without_upstream = static_cast<int>(i)});
  }
}

bool are_equal(const Shapes& shapes) {
  return shapes.size() > 1 && std::all_of(shapes.begin(), shapes.end(),
                                          [&](const Dims& sizes) { return sizes == shapes[0]; });
}

// Rows that accept one tensor for all operands.
bool takes_one_twice(const OpRow& row) {
  const bool mask = domain_of(row, 0).mask || domain_of(row, 1).mask;
  const bool index = domain_of(row, 0).classes > 0 || domain_of(row, 1).classes > 0;
  return row.differentiable && !domain_of(row, 1).fixed && !mask && !index &&
         std::any_of(row.shapes.begin(), row.shapes.end(), are_equal);
}

class GradientTwice : public testing::TestWithParam<size_t> {};

TEST_P(GradientTwice, SameTensor) {
  const OpRow& row = op_table()[GetParam()];
  for (const Shapes& shapes : row.shapes) {
    if (!are_equal(shapes)) {
      continue;
    }
    for (const std::vector<Layout>& layouts : gradient_layouts(shapes)) {
      // x with itself is a tie, where maximum and minimum halve the gradient.
      check_gradient(row, make_sample(row, shapes, layouts, DType::f64, 3001), {.twice = true});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Gradient, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return row.differentiable;
                         })),
                         [](const auto& info) { return row_name(info.param); });
INSTANTIATE_TEST_SUITE_P(OpTable, GradientTwice, testing::ValuesIn(row_indices(takes_one_twice)),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
