// Each input of each row in turn is replaced by something wrong. What no op can accept is an Error
// that names the op; what some ops accept (another rank, another size) gives a result that can be
// read and differentiated, or the same Error. Nothing crashes.
#include <tests/op_table/compare.h>

#include <binade/core/autograd/autograd.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace binade::op_table {
namespace {

Tensor other_sizes(const Tensor& right, const Dims& sizes) {
  if (!is_floating(right.dtype())) {
    return zeros(sizes, right.dtype(), right.device());
  }
  return full(sizes, 0.5, right.dtype(), right.device());
}

struct Wrong {
  std::string what;
  Tensor input;
};

std::vector<Wrong> wrong_sizes(const Tensor& right) {
  std::vector<Wrong> all;
  const auto add = [&](const char* what, const Dims& sizes) {
    all.push_back({text(what, ", ", to_string(sizes)), other_sizes(right, sizes)});
  };
  for (int d = 0; d < right.dim(); ++d) {
    Dims sizes = right.sizes();
    sizes[d] += 1;
    add("one more", sizes);
    sizes[d] = 0;
    add("empty", sizes);
    sizes[d] = 1;
    add("one", sizes);
  }
  Dims longer = right.sizes();
  longer.push_back(2);
  add("one dimension more", longer);
  if (right.dim() > 0) {
    add("one dimension fewer", Dims(std::span(right.sizes().begin() + 1, right.sizes().end())));
    add("a scalar", {});
  }
  add("nine elements in one dimension", {9});
  return all;
}

std::vector<Wrong> wrong_dtypes(const Tensor& right) {
  std::vector<Wrong> all;
  for (const DType dtype :
       {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f16, DType::f32, DType::f64}) {
    if (dtype != right.dtype()) {
      all.push_back({text(dtype), ones(right.sizes(), dtype, right.device())});
    }
  }
  return all;
}

// Indices, one of them outside every range. `absurd`: only those that no memory could hold.
std::vector<Wrong> wrong_indices(const Tensor& right, bool absurd) {
  std::vector<Wrong> all;
  if (right.numel() == 0) {
    return all;
  }
  using Limits = std::numeric_limits<int64_t>;
  for (const int64_t value : {Limits::min(), Limits::min() + 1, int64_t{-1'000'003}, Limits::max(),
                              int64_t{1} << 60, int64_t{1} << 32, int64_t{1'000'003}}) {
    if (absurd && value > 0 && value < int64_t{1} << 60) {
      break;
    }
    std::vector<int64_t> values = right.to(Device{}).to_vector<int64_t>();
    values.back() = value;
    all.push_back(
        {text("an index ", value), Tensor::from(values).reshape(right.sizes()).to(right.device())});
  }
  return all;
}

// A device that is not the one of the inputs, if this build has two.
std::optional<Device> other_device() {
  if (!kernels::test_device().is_cpu()) {
    return Device{};
  }
  try {
    return Device::parse("emulated");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Runs the row on these inputs, and backward where it has a gradient. Returns the text of its
// Error, or nothing if it accepts the inputs.
std::optional<std::string> refusal(const OpRow& row, const Tensors& inputs) {
  Tensors leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor leaf = inputs[i].defined() ? inputs[i].detach() : Tensor();
    if (leaf.defined() && is_floating(leaf.dtype()) && !domain_of(row, i).fixed) {
      leaf.require_grad();
    }
    leaves.push_back(leaf);
  }
  Tensors outputs;
  try {
    outputs = row.function(leaves);
    for (const Tensor& y : outputs) {
      to_array(y);  // a device reports a bad index here
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    // Some rows read the sizes of their inputs.
    EXPECT_TRUE(names_op(error, row) || text.find("got an undefined tensor") != text.npos)
        << "the error names another op: " << text;
    return text;
  }
  std::vector<Seed> seeds;
  for (size_t i = 0; i < std::min(outputs.size(), row.outputs_with_gradient); ++i) {
    if (outputs[i].requires_grad()) {
      seeds.push_back({outputs[i], ones_like(outputs[i])});
    }
  }
  if (!seeds.empty()) {
    backward(seeds);
  }
  for (const Tensor& leaf : leaves) {
    if (leaf.defined() && leaf.requires_grad() && leaf.grad().defined()) {
      EXPECT_EQ(leaf.grad().sizes(), leaf.sizes());
      to_array(leaf.grad());
    }
  }
  return std::nullopt;
}

class Misuse : public testing::TestWithParam<size_t> {
 protected:
  const OpRow& row() const { return op_table()[GetParam()]; }

  // Replaces each input in turn by what wrong(input) gives. Each replacement must be refused if
  // `refused`.
  template <class F>
  void replace_each_input(bool refused, const F& wrong) const {
    const AlgorithmGuard guard(row());
    const Shapes& shapes = row().shapes.front();
    const std::vector<Layout> plain(shapes.size(), Layout::contiguous);
    const Sample sample = make_sample(row(), shapes, plain, DType::f32, 1);
    for (size_t i = 0; i < shapes.size(); ++i) {
      for (const Wrong& one : wrong(sample.views[i])) {
        const std::string label = text(sample.label, ", input ", i, ": ", one.what);
        SCOPED_TRACE(label);
        Tensors inputs = sample.views;
        inputs[i] = one.input;
        try {
          EXPECT_TRUE(refusal(row(), inputs) || !refused) << "accepted";
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
};

// Inputs after the first may be optional.
TEST_P(Misuse, UndefinedInputsAreRefusedOrWork) {
  replace_each_input(false, [](const Tensor&) { return std::vector<Wrong>{{"undefined", {}}}; });
  if (!row().shapes.front().empty()) {
    EXPECT_TRUE(refusal(row(), Tensors(row().shapes.front().size()))) << "all inputs undefined";
  }
}

TEST_P(Misuse, OtherSizesAreRefusedOrWork) { replace_each_input(false, wrong_sizes); }

TEST_P(Misuse, OtherDtypesAreRefusedOrWork) { replace_each_input(false, wrong_dtypes); }

// Rows whose results grow with the largest number.
bool grows(const OpRow& row) {
  return row.name == "bincount" || row.name == "repeat_interleave" ||
         (row.name == "one_hot" && row.attributes == "-1 classes");
}

class MisuseOfIndices : public Misuse {};

TEST_P(MisuseOfIndices, OutsideOfEveryRangeIsRefused) {
  replace_each_input(true, [&](const Tensor& right) {
    return right.dtype() == DType::i64 ? wrong_indices(right, grows(row())) : std::vector<Wrong>{};
  });
}

class MisuseOfDevices : public Misuse {};

TEST_P(MisuseOfDevices, OneInputOnAnotherIsRefused) {
  if (!other_device()) {
    GTEST_SKIP() << "skipped: this build has one device";
  }
  replace_each_input(true, [](const Tensor& right) {
    return std::vector<Wrong>{{"on another device", right.to(*other_device())}};
  });
}

INSTANTIATE_TEST_SUITE_P(OpTable, Misuse,
                         testing::ValuesIn(row_indices([](const OpRow&) { return true; })),
                         [](const auto& info) { return row_name(info.param); });
INSTANTIATE_TEST_SUITE_P(OpTable, MisuseOfIndices,
                         testing::ValuesIn(row_indices([](const OpRow& row) {
                           return std::any_of(row.domains.begin(), row.domains.end(),
                                              [](const Domain& d) { return d.classes > 0; }) &&
                                  row.name != "scaled_dot_product_attention";  // a mask
                         })),
                         [](const auto& info) { return row_name(info.param); });

INSTANTIATE_TEST_SUITE_P(OpTable, MisuseOfDevices,
                         testing::ValuesIn(row_indices([](const OpRow& row) {
                           return row.shapes.front().size() > 1;
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
