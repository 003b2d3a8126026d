// Every row with one input replaced by something a user may hand over by mistake: undefined,
// another dtype, another shape, indices out of range. The op computes a result or throws an Error
// that names it, forward and backward; it never crashes.
#include <binade/core/tensor/create.h>
#include <tests/op_table/compare.h>

#include <gtest/gtest.h>

#include <limits>

namespace binade::op_table {
namespace {

class Misuse : public testing::TestWithParam<size_t> {};

struct Mistake {
  std::string what;
  Tensor input;
};

// x with dimension `dim` longer by `more` elements.
Tensor resized(const Tensor& x, int dim, int64_t more) {
  Dims sizes = x.sizes();
  sizes[dim] = std::max<int64_t>(0, sizes[dim] + more);
  return ones(sizes, DType::f32, x.device()).to(x.dtype());
}

std::vector<Mistake> mistakes(const Tensor& x) {
  std::vector<Mistake> all = {{"undefined", Tensor()},
                              {"of no dimension", ones({}, DType::f32, x.device()).to(x.dtype())},
                              {"with one dimension more", unsqueeze(x, 0)}};
  for (const DType dtype :
       {DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8, DType::boolean}) {
    if (dtype != x.dtype()) {
      all.push_back({text("of dtype ", dtype), x.to(dtype)});
    }
  }
  for (int dim = 0; dim < x.dim(); ++dim) {
    all.push_back({text("with dimension ", dim, " longer"), resized(x, dim, 1)});
    all.push_back({text("with dimension ", dim, " empty"), resized(x, dim, -x.size(dim))});
  }
  if (x.dim() > 0) {
    all.push_back({"with one dimension less", sum(x.to(DType::f32), {0}).to(x.dtype())});
  }
  if (x.dtype() == DType::i64) {
    for (const int64_t value :
         {int64_t{-1'000'000}, int64_t{1'000'000}, std::numeric_limits<int64_t>::min(),
          std::numeric_limits<int64_t>::max()}) {
      Tensor indices = empty(x.sizes(), DType::i64);
      std::fill_n(indices.data<int64_t>(), indices.numel(), value);
      all.push_back({text("with indices of ", value), indices.to(x.device())});
    }
  }
  return all;
}

// Forward, and backward with an upstream gradient for every output that has a history.
void run(const OpRow& row, Tensors inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (row.differentiable && inputs[i].defined() && is_floating(inputs[i].dtype()) &&
        !domain_of(row, i).fixed) {
      inputs[i].require_grad();
    }
  }
  const Tensors outputs = row.function(inputs);
  for (size_t i = 0; i < std::min(outputs.size(), row.outputs_with_gradient); ++i) {
    if (outputs[i].requires_grad()) {
      outputs[i].backward(ones_like(outputs[i]));
    }
  }
}

TEST_P(Misuse, GivesAResultOrAnErrorThatNamesTheOp) {
  const OpRow& row = op_table()[GetParam()];
  const Shapes& shapes = row.shapes[0];
  const std::vector<Layout> plain(shapes.size(), Layout::contiguous);
  const Sample sample = make_sample(row, shapes, plain, DType::f32, 1);
  for (size_t i = 0; i < sample.views.size(); ++i) {
    for (const Mistake& mistake : mistakes(sample.views[i].detach())) {
      const std::string label =
          text("op=", row.name, "(", row.attributes, ") input ", i, " ", mistake.what);
      Tensors inputs;
      for (const Tensor& view : sample.views) {
        inputs.push_back(view.detach());
      }
      inputs[i] = mistake.input;
      try {
        run(row, inputs);
      } catch (const Error& error) {
        EXPECT_TRUE(names_op(error, row)) << "got '" << error.what() << "': " << label;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "not a binade::Error but '" << error.what() << "': " << label;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Misuse, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return !row.shapes.empty();
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
