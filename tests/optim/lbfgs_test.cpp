// L-BFGS takes PyTorch's steps, keeps to masters, resumes bit for bit, and says what is wrong.
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/optim/lbfgs.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>
#include <tests/support/error_of.h>

#include <cmath>
#include <stdexcept>

namespace binade::optim::lbfgs_test {
namespace {

Tensor start_of(DType dtype = DType::f64) {
  return from_values({-1.5, 2, 0.5}, {3}, dtype).to(test_device());
}

// Rosenbrock's function; its gradient goes to x.
Tensor valley(const Tensor& x) {
  const Tensor left = slice(x, 0, 0, 2), right = slice(x, 0, 1, 3);
  Tensor y = sum(add(square(sub(1, left)), mul(square(sub(right, square(left))), 100)));
  y.backward();
  return y;
}

struct Wanted {
  double loss;
  std::vector<double> x;
  int64_t evaluations;
};

void expect_path(const LBFGSOptions& options, const std::vector<Wanted>& path) {
  Tensor x = start_of();
  LBFGS lbfgs(ParameterList::of(x), options);
  for (const Wanted& wanted : path) {
    const double loss = lbfgs.step([&] { return valley(x); });
    EXPECT_NEAR(loss, wanted.loss, 1e-9 * wanted.loss);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(x.at(i), wanted.x[static_cast<size_t>(i)], 1e-8);
    }
    EXPECT_EQ(lbfgs.evaluations(), wanted.evaluations);
    EXPECT_FALSE(x.grad().defined() && x.grad().at(0) != 0);
  }
}

TEST(LBFGS, TakesTheStepsOfPyTorch) {  // torch.optim.LBFGS 2.15
  expect_path({.max_iter = 4, .history_size = 2, .line_search = LineSearch::strong_wolfe},
              {{1238.5, {-1.00295321317736, 0.972721571587521, 0.894112509630935}, 5},
               {4.39392495635026, {-0.970920479785363, 0.948867872568559, 0.904993983127511}, 11},
               {3.89311930766661, {-0.862177872581497, 0.734540534703508, 0.526892579620441}, 16},
               {3.56195754534543, {-0.706815516616492, 0.511277399719182, 0.260778024715124}, 21}});
  expect_path(
      {.lr = 0.5, .line_search = LineSearch::strong_wolfe},
      {{1238.5, {-0.806478866391402, 0.666850348097994, 0.430520056630977}, 23},
       {3.42146612548592, {0.0531164761803402, -0.0149551346029417, 0.0123795496586378}, 46}});
  expect_path({.lr = 0.1, .max_iter = 5, .history_size = 3},
              {{1238.5, {-1.41983892969254, 1.72701367993399, 0.613593065943645}, 5},
               {575.940293584104, {-1.31005202277721, 1.53846989451453, 0.790140803104505}, 10},
               {257.400061751901, {-1.22913764460451, 1.41244314087363, 0.989171152981817}, 15}});
}

TEST(LBFGS, Maximizes) {
  Tensor x = start_of();
  LBFGS lbfgs(ParameterList::of(x), {.max_iter = 4,
                                     .history_size = 2,
                                     .line_search = LineSearch::strong_wolfe,
                                     .maximize = true});
  EXPECT_EQ(lbfgs.step([&] {
    const Tensor left = slice(x, 0, 0, 2), right = slice(x, 0, 1, 3);
    Tensor y = neg(sum(add(square(sub(1, left)), mul(square(sub(right, square(left))), 100))));
    y.backward();
    return y;
  }),
            -1238.5);
  EXPECT_NEAR(x.at(0), -1.00295321317736, 1e-8);
}

TEST(LBFGS, FindsTheMinimumOfSeveralParameters) {
  Tensor a = randn({3, 2}).to(test_device()), b = randn({4}).to(test_device()),
         unused = ones({2}).to(test_device());
  LBFGS lbfgs(ParameterList::of(a, b, unused), {.line_search = LineSearch::strong_wolfe});
  const auto loss = [&] {
    Tensor y = add(sum(square(add(a, -3))), add(sum(square(square(b))), mul(sum(b), 4)));
    y.backward();
    return y;
  };
  for (int i = 0; i < 3; ++i) {
    lbfgs.step(loss);
  }
  EXPECT_NEAR(a.at(5), 3, 1e-3);
  EXPECT_NEAR(b.at(0), -1, 1e-2);  // 4 b^3 + 4 = 0
  EXPECT_EQ(unused.at(0), 1);
}

TEST(LBFGS, ResumesBitForBit) {
  for (LineSearch search : {LineSearch::none, LineSearch::strong_wolfe}) {
    const LBFGSOptions options{.lr = 0.2, .max_iter = 3, .history_size = 4, .line_search = search};
    Tensor x = start_of(DType::f32);
    LBFGS lbfgs(ParameterList::of(x), options);
    lbfgs.step([&] { return valley(x); });
    lbfgs.step([&] { return valley(x); });
    Tensor y = clone(x.detach());
    LBFGS other(ParameterList::of(y),
                {.lr = 1, .max_iter = 3, .history_size = 4, .line_search = search});
    other.load_state(lbfgs.state_tensors(), lbfgs.state_scalars());
    EXPECT_EQ(other.lr(), 0.2);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(lbfgs.step([&] { return valley(x); }), other.step([&] { return valley(y); }));
      EXPECT_EQ(bytes_of(x), bytes_of(y));
    }
    EXPECT_EQ(other.iterations(), lbfgs.iterations());
  }
}

TEST(LBFGS, MovesTheMasters) {
  TestParameters parameters({{"w", {2}, DType::f16}}, true);
  parameters.arena->set_value(parameters.list[0], on_test_device(ones({2})));
  LBFGS lbfgs(parameters.list, {.max_iter = 1});
  const double slope = 0x1p-13;  // a step that f16 rounds away
  const auto closure = [&] {
    parameters.set_gradient(0, on_test_device(full({2}, slope)), 4);
    return full({}, 2 * slope);
  };
  lbfgs.step(closure);
  const NamedTensors state = lbfgs.state_tensors();
  ASSERT_EQ(state[0].first, "master.w");
  EXPECT_EQ(state[0].second.at(0), 1 - slope);
  EXPECT_EQ(parameters.list[0].value.at(0), 1);
  TestParameters others({{"w", {2}, DType::f16}}, true);
  LBFGS other(others.list, {.max_iter = 1});
  other.load_state(state, lbfgs.state_scalars());
  EXPECT_EQ(other.state_tensors()[0].second.at(1), 1 - slope);
}

TEST(LBFGS, ThePolicyIsForTheClosure) {
  Tensor x = start_of(DType::f32), y = start_of(DType::f32);
  LBFGS plain(ParameterList::of(x)), scoped(ParameterList::of(y));
  plain.step([&] { return valley(x); });
  const PrecisionScope scope(Precision::half(DType::f16));
  scoped.step([&] {
    EXPECT_EQ(mul(ones({1}), 2).dtype(), DType::f16);
    const PrecisionScope full(Precision::full());
    return valley(y);
  });
  EXPECT_EQ(bytes_of(x), bytes_of(y));
}

TEST(LBFGS, SaysWhatIsWrong) {
  Tensor x = start_of(), y = ones({2}).to(test_device());
  const ParameterList list = ParameterList::of(x, y);
  const auto half = [&](const char* name) {
    return list.filter([&](const Parameter& p) { return p.name == name; });
  };
  const auto starts = [](const std::string& message, const char* begin) {
    EXPECT_TRUE(message.starts_with(begin)) << message;
  };
  const auto made = [&](const LBFGSOptions& options) {
    return error_of([&] { LBFGS{list, options}; });
  };
  starts(error_of([&] {
           LBFGS two(std::vector<ParamGroup>{{.parameters = half("0")}, {.parameters = half("1")}});
         }),
         "LBFGS: got 2 groups, expected one");
  starts(error_of([&] { LBFGS(std::vector<ParamGroup>{{.parameters = list, .lr = 0.1}}); }),
         "LBFGS: got a group with options");
  starts(made({.lr = -1}), "LBFGS: got lr = -1");
  starts(made({.max_iter = 0}), "LBFGS: got max_iter = 0");
  starts(made({.max_eval = 0}), "LBFGS: got max_eval = 0");
  starts(made({.history_size = 0}), "LBFGS: got history_size = 0");
  starts(made({.tolerance_grad = -1}), "LBFGS: got tolerance_grad = -1");
  starts(error_of([&] { LBFGS{ParameterList()}; }), "LBFGS: got no parameters");
  LBFGS lbfgs(list);
  starts(error_of([&] { lbfgs.step([&] { return sum(x); }); }), "LBFGS: got no gradient");
  starts(error_of([&] { lbfgs.step([&] { return x; }); }),
         "LBFGS: got a closure that returned shape");
  starts(error_of([&] { lbfgs.step([] { return Tensor(); }); }),
         "LBFGS: got a closure that returned an undefined tensor");
  starts(error_of([&] {
           lbfgs.step([&] {
             Tensor loss = sum(mul(x, NAN));
             loss.backward();
             return loss;
           });
         }),
         "LBFGS: got a loss of");
  EXPECT_EQ(x.at(0), -1.5);
  lbfgs.step([&] { return valley(x); });
  NamedScalars scalars = lbfgs.state_scalars();
  scalars.erase("t");
  starts(error_of([&] { lbfgs.load_state(lbfgs.state_tensors(), scalars); }),
         "LBFGS load_state: got no number t");
  starts(error_of([&] { lbfgs.load_state({}, lbfgs.state_scalars()); }), "LBFGS load_state");
  LBFGS shorter(list, {.history_size = 1});
  starts(error_of([&] { shorter.load_state(lbfgs.state_tensors(), lbfgs.state_scalars()); }),
         "LBFGS load_state: got");
}

TEST(LBFGS, AClosureThatThrowsLeavesTheParameters) {
  for (LineSearch search : {LineSearch::none, LineSearch::strong_wolfe}) {
    Tensor x = start_of();
    LBFGS lbfgs(ParameterList::of(x), {.lr = 0.1, .line_search = search});
    int calls = 0;
    EXPECT_THROW(lbfgs.step([&] {
      if (++calls == 2) {
        throw std::runtime_error("no data");
      }
      return valley(x);
    }),
                 std::runtime_error);
    EXPECT_EQ(x.at(0), -1.5);
    EXPECT_EQ(lbfgs.step([&] { return valley(x); }), 1238.5);
    EXPECT_NE(x.at(0), -1.5);
  }
}

// Beyond 2 the loss is infinite: the search stays before it.
TEST(LBFGS, AStepTooFarIsInfinite) {
  Tensor x = full({1}, 1, DType::f64).to(test_device());
  LBFGS lbfgs(ParameterList::of(x), {.lr = 100, .line_search = LineSearch::strong_wolfe});
  lbfgs.step([&] {  // -log(2 - x) - 3 x falls until x = 5 / 3
    Tensor loss = sum(sub(neg(log(sub(2, x))), mul(x, 3)));
    loss.backward();
    return loss;
  });
  EXPECT_NEAR(x.at(0), 5. / 3, 1e-3);
}

}  // namespace
}  // namespace binade::optim::lbfgs_test
