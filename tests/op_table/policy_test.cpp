// Precision policies: under autocast, mixed and half, every op takes its inputs and stores its
// results in the dtypes of its class, and is as accurate as the class promises. The table of op
// classes must list exactly the ops that ran.
#include <binade/core/autograd/op.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/observe/observer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <tests/kernels/support/test_device.h>
#include <tests/op_table/compare.h>

namespace binade::op_table {
namespace {

const std::map<std::string, OpClass>& table() {
  static const auto* const known = [] {
    auto* classes = new std::map<std::string, OpClass>;
    for (const OpInfo& op : op_classes()) {
      classes->emplace(op.name, op.op_class);
    }
    return classes;
  }();
  return *known;
}

// The rule, independent of core/precision/precision.cpp: the dtype to which inputs are cast, given
// their widest dtype.
DType expected_input(OpClass op_class, const Precision& precision, DType widest) {
  const bool narrow = op_class == OpClass::contraction || op_class == OpClass::pointwise;
  const bool f32_store =
      precision.store == Store::apex ||
      (precision.store == Store::by_policy && precision.policy == Precision::kAutocast);
  if (op_class == OpClass::contraction || (precision.policy == Precision::kHalf && narrow)) {
    return precision.low;
  }
  if (narrow) {
    return widest;
  }
  return f32_store ? DType::f32 : precision.policy == Precision::kHalf ? precision.low : widest;
}

struct FollowsClasses : OpObserver {
  explicit FollowsClasses(const Precision& p) : precision(p) {}

  void policy(const PolicyEvent& event) override {
    widest = DType::boolean;
    for (const Tensor* input : event.inputs) {
      if (input->defined() && is_floating(input->dtype())) {
        widest = widest == DType::boolean || widest == input->dtype() ? input->dtype() : DType::f32;
      }
    }
    entered = event.op.name;
  }

  void result(const OpEvent& event) override {
    const auto known = table().find(event.op.name);
    ASSERT_NE(known, table().end()) << event.op.name << " ran, but op_classes() has it not";
    EXPECT_EQ(known->second, event.op.op_class) << event.op.name;
    ran.push_back(event.op.name);
    if (event.op.op_class == OpClass::movement || entered != event.op.name ||
        widest == DType::boolean) {
      return;
    }
    const DType wanted = expected_input(event.op.op_class, precision, widest);
    // Statistics and parameters of norms are f32 for every x; class weights are not operands.
    const Tensor& x = *event.inputs[0];
    if (x.defined() && is_floating(x.dtype())) {
      EXPECT_EQ(x.dtype(), wanted) << "first input of " << event.op.name;
    }
    for (const Tensor& y : event.outputs) {
      if (y.defined() && is_floating(y.dtype())) {
        EXPECT_EQ(y.dtype(), event.op.op_class == OpClass::loss ? DType::f32 : wanted)
            << "result of " << event.op.name;
      }
    }
  }

  Precision precision;
  DType widest = DType::boolean;
  std::string entered;
  std::vector<std::string> ran;
};

std::vector<Precision> policies() {
  std::vector<Precision> all;
  for (DType low : {DType::f16, DType::bf16}) {
    for (const Precision& p :
         {Precision::autocast(low), Precision::mixed(low), Precision::half(low)}) {
      for (Store store : {Store::by_policy, Store::paper, Store::apex}) {
        all.push_back(p.with(store));
      }
    }
  }
  return all;
}

class Policy : public testing::TestWithParam<size_t> {};

TEST_P(Policy, DtypesFollowTheClass) {
  const OpRow& row = op_table()[GetParam()];
  uint64_t seed = 1;
  for (const Precision& precision : policies()) {
    for (DType given : {DType::f32, precision.low}) {
      const Shapes& shapes = row.shapes[0];
      // Values that the low dtype can represent, so that a cast loses nothing.
      const std::vector<Layout> layouts = layout_choices(shapes)[0];
      Sample sample = make_sample(row, shapes, layouts, precision.low, seed++);
      if (given == DType::f32) {
        sample = converted(row, sample, DType::f32);
      }
      SCOPED_TRACE(text(to_string(precision), ", inputs ", given, ": ", sample.label));
      FollowsClasses follows(precision);
      Tensors got;
      {
        const PrecisionScope scope(precision);
        const ObserverScope observe(follows);
        got = row.function(sample.views);
      }
      const Arrays expected = row.reference(sample.values);
      for (size_t i = 0; i < got.size(); ++i) {
        const bool accurate = !is_floating(got[i].dtype()) || follows.ran.size() <= 1 ||
                              got[i].dtype() == sample.views[0].dtype();
        if (accurate) {  // f32 inside, rounded once: as exact as the dtype of the result
          EXPECT_EQ(mismatch(row, sample, got[i], expected[i]), "");
        }
      }
    }
  }
}

TEST_P(Policy, GradientsHaveTheDtypesOfTheInputs) {
  const OpRow& row = op_table()[GetParam()];
  if (!row.differentiable) {
    return;
  }
  for (const Precision& precision :
       {Precision::autocast(DType::f16), Precision::mixed(DType::bf16).with(Store::apex)}) {
    for (DType given : {DType::f32, precision.low}) {
      const Shapes& shapes = row.shapes[0];
      const Sample sample = make_sample(row, shapes, layout_choices(shapes)[0], given, 7);
      SCOPED_TRACE(text(to_string(precision), ", inputs ", given, ": ", sample.label));
      const PrecisionScope scope(precision);
      const Tensors upstream = random_upstream(row.function(sample.views), 7);
      const Result result = run_with_gradient(row, sample, upstream);
      for (size_t i = 0; i < result.gradients.size(); ++i) {
        if (result.gradients[i].defined()) {
          EXPECT_EQ(result.gradients[i].dtype(), DType::f32) << i;  // grad() reads true values
        }
      }
    }
  }
}

// Inputs of two dtypes: the op casts them to one dtype and is as accurate as with that one.
TEST_P(Policy, TakesMixedInputs) {
  const OpRow& row = op_table()[GetParam()];
  uint64_t seed = 1;
  for (const Precision& precision :
       {Precision::autocast(DType::f16), Precision::mixed(DType::bf16), Precision::half(DType::f16),
        Precision::mixed(DType::f16).with(Store::apex)}) {
    for (size_t wide : {0, 1}) {  // the f32 inputs: the even ones or the odd ones
      const Shapes& shapes = row.shapes[0];
      Sample sample = make_sample(row, shapes, layout_choices(shapes)[0], precision.low, seed++);
      const Sample same_in_f32 = converted(row, sample, DType::f32);
      for (size_t i = wide; i < sample.views.size(); i += 2) {
        sample.bases[i] = same_in_f32.bases[i];
        sample.views[i] = same_in_f32.views[i];
      }
      SCOPED_TRACE(text(to_string(precision), ", every second input f32: ", sample.label));
      FollowsClasses follows(precision);
      const PrecisionScope scope(precision);
      Tensors got;
      {
        const ObserverScope observe(follows);
        got = row.function(sample.views);
      }
      const Arrays expected = row.reference(sample.values);
      for (size_t i = 0; i < got.size(); ++i) {
        if (!is_floating(got[i].dtype()) || follows.ran.size() <= 1) {
          EXPECT_EQ(mismatch(row, sample, got[i], expected[i]), "");
        }
      }
      if (row.differentiable) {
        const Result result = run_with_gradient(row, sample, random_upstream(got, 7));
        for (const Tensor& gradient : result.gradients) {
          EXPECT_TRUE(!gradient.defined() || gradient.dtype() == DType::f32);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Policy,
                         testing::ValuesIn(row_indices([](const OpRow&) { return true; })),
                         [](const auto& info) { return row_name(info.param); });

TEST(OpClasses, TheTableIsWhatRuns) {
  FollowsClasses seen(Precision::full());
  for (const OpRow& row : op_table()) {
    const Sample sample = make_sample(row, row.shapes[0], layout_choices(row.shapes[0])[0],
                                      row.any_dtype ? DType::f32 : DType::f32, 1);
    const ObserverScope observe(seen);
    row.function(sample.views);
    const Tensors outputs = row.differentiable ? row.function(sample.views) : Tensors{};
    if (row.differentiable) {
      run_with_gradient(row, sample, random_upstream(outputs, 1));
    }
  }
  // Ops that no row can reach: transfers between devices, casts of a policy, recompute(), and
  // feedforward, which is three ops while an observer is registered.
  std::vector<std::string> missing;
  for (const auto& [name, op_class] : table()) {
    if (std::find(seen.ran.begin(), seen.ran.end(), name) == seen.ran.end()) {
      missing.push_back(name);
    }
  }
  std::vector<std::string> unreached = {"einsum", "feedforward", "policy_cast", "recompute",
                                        "recompute_argument"};
  if (kernels::test_device().is_cpu()) {
    unreached.push_back("to_device");
  }
  if (!linalg::is_available()) {
    for (const char* name : {"cholesky", "det", "eigh", "inv", "lstsq", "pinv", "qr", "slogdet",
                             "solve", "solve_triangular", "svd"}) {
      unreached.push_back(name);
    }
    std::sort(unreached.begin(), unreached.end());
  }
  EXPECT_EQ(missing, unreached);
}

}  // namespace
}  // namespace binade::op_table
