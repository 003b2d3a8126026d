#include <binade/core/autograd/gradcheck.h>

#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>

namespace binade::gradcheck_test {
namespace {

Tensor leaf(const Dims& sizes) {
  Tensor x = rand(sizes, DType::f64);
  x.require_grad();
  return x;
}

std::string error_of(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                     const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  try {
    gradcheck(f, inputs, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Tensor only_square(const std::vector<Tensor>& in) { return square(in[0]); }

// y = x^2 with a gradient that is wrong by `factor`.
constexpr Op kWrong{"wrong", OpClass::pointwise};
Tensor wrong_square(const Tensor& x, double factor) {
  Tensor y;
  {
    const NoGradGuard no_grad;
    y = square(x);
  }
  return kWrong.record({x}, y, save(x),
                       [factor](const Tensor& dy, Needs, const Tensor& x) -> Grads {
                         return {mul(mul(x, dy), 2 * factor)};
                       });
}

// y = x^2 with a gradient that is wrong by `error` in one element.
constexpr Op kSlip{"slip", OpClass::pointwise};
Tensor slipped_square(const Tensor& x, int64_t element, double error) {
  Tensor y;
  {
    const NoGradGuard no_grad;
    y = square(x);
  }
  return kSlip.record({x}, y, save(x),
                      [element, error](const Tensor& dy, Needs, const Tensor& x) -> Grads {
                        Tensor dx = mul(mul(x, dy), 2).contiguous();
                        dx.data<double>()[element] += error;
                        return {dx};
                      });
}

// The gradient of a sum over rows, right only if all upstream gradients are equal.
constexpr Op kHidden{"hidden", OpClass::pointwise};
Tensor hidden_by_ones(const Tensor& x) {
  Tensor y;
  {
    const NoGradGuard no_grad;
    y = mul(x, 3);
  }
  return kHidden.record({x}, y, save(), [](const Tensor& dy, Needs) -> Grads {
    return {mul(expand(mean(dy, {}, true), dy.sizes()), 3)};
  });
}

TEST(Gradcheck, AcceptsRightGradients) {
  EXPECT_EQ(error_of(only_square, {leaf({3, 4})}), "");
  EXPECT_EQ(error_of([](const auto& in) { return mul(in[0], in[1]); }, {leaf({3, 4}), leaf({4})}),
            "");
  EXPECT_EQ(error_of(only_square, {leaf({})}), "");
  EXPECT_EQ(error_of(only_square, {leaf({0, 3})}), "");
}

TEST(Gradcheck, RejectsWrongGradients) {
  const std::string text =
      error_of([](const auto& in) { return wrong_square(in[0], 1.0001); }, {leaf({2, 3})});
  EXPECT_NE(text.find("gradcheck: input 0, element 0: analytic gradient"), std::string::npos)
      << text;
  EXPECT_NE(text.find("numeric"), std::string::npos) << text;
  EXPECT_EQ(error_of([](const auto& in) { return wrong_square(in[0], 1); }, {leaf({2, 3})}), "");
}

TEST(Gradcheck, RejectsWhatOnesWouldHide) {
  EXPECT_NE(error_of([](const auto& in) { return hidden_by_ones(in[0]); }, {leaf({2, 3})}), "");
}

TEST(Gradcheck, NamesTheInputAndElement) {
  const auto half_wrong = [](const std::vector<Tensor>& in) {
    return cat({square(in[0]), wrong_square(in[1], 2)}, 0);
  };
  const std::string text = error_of(half_wrong, {leaf({2}), leaf({3})});
  EXPECT_NE(text.find("input 1, element 0"), std::string::npos) << text;
}

TEST(Gradcheck, AnElementIsNamedWhateverTheOthersAre) {
  for (const int64_t element : {0, 5, 11}) {
    const auto f = [&](const auto& in) { return slipped_square(in[0], element, 1e-5); };
    const std::string text = error_of(f, {leaf({3, 4})});
    EXPECT_NE(text.find(binade::text("input 0, element ", element, ":")), std::string::npos)
        << text;
  }
}

TEST(Gradcheck, DirectionsAcceptRightGradients) {
  EXPECT_EQ(error_of(only_square, {leaf({3, 4})}, {.directions = 2}), "");
  EXPECT_EQ(error_of([](const auto& in) { return mul(exp(in[0]), in[1]); },
                     {leaf({3, 4}), leaf({4})}, {.directions = 3}),
            "");
  EXPECT_EQ(error_of(only_square, {leaf({})}, {.directions = 1}), "");
  EXPECT_EQ(error_of(only_square, {leaf({0, 3})}, {.directions = 1}), "");
  Tensor large = mul(randn({5}, DType::f64), 1e6);
  large.require_grad();
  EXPECT_EQ(error_of(only_square, {large}, {.directions = 2}), "");
}

TEST(Gradcheck, DirectionsFindOneWrongElement) {
  for (int64_t element = 0; element < 60; ++element) {
    const auto f = [&](const auto& in) { return slipped_square(in[0], element, 1e-3); };
    EXPECT_EQ(error_of(f, {leaf({3, 20})}, {.directions = 1}).substr(0, 32),
              "gradcheck: input 0, direction 0:")
        << element;
  }
}

TEST(Gradcheck, EveryInputHasItsDirections) {
  const auto half_wrong = [](const std::vector<Tensor>& in) {
    return cat({square(in[0]), wrong_square(in[1], 2)}, 0);
  };
  const std::string text = error_of(half_wrong, {leaf({2}), leaf({3})}, {.directions = 1});
  EXPECT_NE(text.find("input 1, direction 0: analytic"), std::string::npos) << text;
  gradgradcheck([](const auto& in) { return mul(mul(in[0], in[0]), in[1]); },
                {leaf({3}), leaf({3})}, {.directions = 1});
}

TEST(Gradcheck, DirectionsMoveBothWaysAndDiffer) {
  std::vector<double> seen;  // first elements that the function was called with
  gradcheck(
      [&](const auto& in) {
        seen.push_back(in[0].detach().at(0));
        return square(in[0]);
      },
      {leaf({4})}, {.directions = 2});
  ASSERT_EQ(seen.size(), 7u);  // two backwards, one for the sizes, two per direction
  const double x = seen[0];
  EXPECT_NEAR(seen[3] - x, x - seen[4], 1e-15);
  EXPECT_NE(seen[3], seen[5]);
  for (const size_t i : {3, 5}) {
    EXPECT_GE(std::fabs(seen[i] - x), 2.9e-6);
    EXPECT_LE(std::fabs(seen[i] - x), 6.1e-6);
  }
}

TEST(Gradcheck, InputsWithoutGradientAreHeldFixed) {
  const auto f = [](const auto& in) { return mul(in[0], in[1].detach()); };
  EXPECT_EQ(error_of(f, {leaf({3}), rand({3}, DType::f64)}), "");
  EXPECT_NE(error_of(f, {leaf({3}), leaf({3})}), "") << "a missing gradient must count as zero";
}

TEST(Gradcheck, KeepsStridesAndInputs) {
  Tensor x = transpose(rand({3, 4}, DType::f64), 0, 1);
  x.require_grad();
  const double before = x.at(5);
  bool transposed = false;
  gradcheck(
      [&](const auto& in) {
        transposed = !in[0].is_contiguous();
        return square(in[0]);
      },
      {x});
  EXPECT_TRUE(transposed);
  EXPECT_EQ(x.at(5), before);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Gradcheck, ExplainsBadUse) {
  Tensor narrow = rand({3});
  narrow.require_grad();
  EXPECT_NE(error_of(only_square, {narrow}).find("expected f64"), std::string::npos);
  EXPECT_NE(error_of(only_square, {rand({3}, DType::f64)}).find("requires a gradient"),
            std::string::npos);
  Tensor overlapping = make_view(rand({1}, DType::f64), {3}, {0});
  overlapping.require_grad();
  EXPECT_NE(error_of(only_square, {overlapping}).find("inside the function"), std::string::npos);
  EXPECT_NE(error_of(only_square, {leaf({3})}, {.directions = -1}).find("got -1 directions"),
            std::string::npos);
  EXPECT_NE(error_of([](const auto&) { return Tensor(); }, {leaf({3})}).find("undefined"),
            std::string::npos);
  EXPECT_NE(error_of([](const auto& in) { return square(in[0].detach()); }, {leaf({3})})
                .find("does not depend"),
            std::string::npos);
}

TEST(Gradcheck, RejectsBackwardThatDoesNotRepeat) {
  int calls = 0;
  const auto f = [&](const auto& in) {
    return wrong_square(in[0], ++calls == 2 ? 1 + 1e-12 : 1.0);
  };
  EXPECT_NE(error_of(f, {leaf({3})}).find("the same bits"), std::string::npos);
}

}  // namespace
}  // namespace binade::gradcheck_test
