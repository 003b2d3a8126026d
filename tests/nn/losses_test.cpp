// Losses as objects and functions: values, options, dtypes of results, second derivatives.
#include <binade/core/observe/warning.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/losses.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace binade::nn::losses_test {
namespace {

TEST(Losses, ObjectsHoldTheirOptions) {
  const Tensor x = from_values({1, 2, 4}, {3}), t = from_values({1, 0, 1}, {3});
  EXPECT_NEAR(MSELoss()(x, t).item(), 13.0 / 3, 1e-6);
  EXPECT_EQ(MSELoss(Reduction::sum)(x, t).item(), 13);
  EXPECT_EQ(L1Loss(Reduction::none)(x, t).at(2), 3);
  EXPECT_EQ(SmoothL1Loss({.reduction = Reduction::sum, .beta = 2})(x, t).item(), 1 + 2);
  EXPECT_EQ(HuberLoss({.reduction = Reduction::sum, .delta = 2})(x, t).item(), 2 + 4);
  EXPECT_THROW(HuberLoss({.delta = 0}), Error);
  EXPECT_THROW(SmoothL1Loss({.beta = -1}), Error);
  const Tensor half = full({2, 2}, 0.5);
  EXPECT_NEAR(BCELoss()(half, half).item(), std::log(2), 1e-6);
  EXPECT_NEAR(BCEWithLogitsLoss()(zeros({2, 2}), half).item(), std::log(2), 1e-6);
  EXPECT_NEAR(BCEWithLogitsLoss({.pos_weight = full({2}, 3)})(zeros({2, 2}), half).item(),
              2 * std::log(2), 1e-6);
  const KLDivLoss divergence({.reduction = Reduction::batch_mean});
  EXPECT_NEAR(divergence(log(half), half).item(), 0, 1e-6);
  EXPECT_NEAR(CosineSimilarity({.dim = 0})(x, x).item(), 1, 1e-6);
}

TEST(Losses, MarginsAndLikelihoodsHoldTheirOptions) {
  const Tensor a = from_values({0, 0}, {1, 2}), p = from_values({3, 4}, {1, 2}),
               n = from_values({6, 8}, {1, 2}), apart = full({1}, -1);
  EXPECT_NEAR(TripletMarginLoss({.margin = 7, .eps = 0})(a, p, n).item(), 2, 1e-5);
  EXPECT_THROW(TripletMarginLoss({.margin = -1}), Error);
  EXPECT_NEAR(CosineEmbeddingLoss({.margin = 0.25})(p, n, apart).item(), 0.75, 1e-6);
  const MarginRankingLoss ranking({.reduction = Reduction::sum, .margin = 2});
  EXPECT_EQ(ranking(p, n, apart).item(), 0);
  EXPECT_EQ(ranking(n, p, apart).item(), 3 + 2 + 4 + 2);
  const HingeEmbeddingLoss hinge({.reduction = Reduction::none, .margin = 5});
  EXPECT_EQ(hinge(p, apart).at(1), 1);
  const GaussianNLLLoss gaussian({.full = true});
  EXPECT_NEAR(gaussian(p, p, ones({1, 2})).item(), 0.5 * std::log(2 * M_PI), 1e-6);
  EXPECT_EQ(PoissonNLLLoss({.log_input = false, .eps = 0})(ones({1}), ones({1})).item(), 1);
}

TEST(Losses, Classes) {
  const Tensor logits = zeros({2, 4, 3}), target = ones({2, 3}, DType::i64);
  EXPECT_NEAR(CrossEntropyLoss()(logits, target).item(), std::log(4), 1e-6);
  EXPECT_NEAR(CrossEntropyLoss()(logits, full({2, 4, 3}, 0.25)).item(), std::log(4), 1e-6);
  EXPECT_NEAR(NLLLoss()(log_softmax(logits, 1), target).item(), std::log(4), 1e-6);
  const Tensor times = full({1}, 2, DType::i64), length = ones({1}, DType::i64);
  const CTCLoss ctc({.reduction = Reduction::sum});  // a, a-, -a of two times and four classes
  EXPECT_NEAR(ctc(zeros({2, 1, 4}), ones({1, 1}, DType::i64), times, length).item(),
              -std::log(3.0 / 16), 1e-6);
}

TEST(Losses, ProbabilitiesHaveNoIgnoreIndex) {
  const Tensor logits = zeros({2, 4});
  try {
    (void)cross_entropy(logits, full({2, 4}, .25), {.ignore_index = 1});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cross_entropy: got ignore_index 1 with probabilities as targets, expected class "
                 "indices, or a negative ignore_index");
  }
}

TEST(Losses, AccuracyOfNothingIsNaN) {
  EXPECT_TRUE(std::isnan(accuracy(zeros({0, 4}), zeros({0}, DType::i64))));
  EXPECT_EQ(accuracy(from_values({1, 2, 4, 3}, {2, 2}), ones({2}, DType::i64)), .5);
}

TEST(Losses, WarnsOnceIfInputAndTargetAreCombinedInPairs) {
  std::vector<std::string> warnings;
  const WarningHandler before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  const Tensor column = zeros({64, 1}), row = zeros({64});
  (void)mse_loss(column, zeros({64, 1}));
  (void)mse_loss(column, zeros({}));
  (void)l1_loss(zeros({64, 3}), zeros({3}));
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(huber_loss(column, row, 1, Reduction::none).sizes(), (Dims{64, 64}));
  (void)mse_loss(row, column);
  set_warning_handler(before);
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "huber_loss: got an input of shape [64, 1] and a target of shape [64], "
                          "which broadcast to [64, 64]; if element i belongs to element i, reshape "
                          "one to the shape of the other"});
}

TEST(Losses, ReductionsByName) {
  EXPECT_EQ(parse_reduction("none"), Reduction::none);
  EXPECT_EQ(parse_reduction("mean"), Reduction::mean);
  EXPECT_EQ(parse_reduction("sum"), Reduction::sum);
  EXPECT_EQ(parse_reduction("batchmean"), Reduction::batch_mean);
  EXPECT_THROW(parse_reduction("median"), Error);
}

TEST(Losses, DtypesOfInputAndTargetMayDiffer) {
  Tensor x = from_values({0.1, 2}, {2}, DType::f16);
  x.require_grad();
  const Tensor t = from_values({1.1, 0}, {2}, DType::f32);
  const Tensor loss = mse_loss(x, t, Reduction::sum);
  EXPECT_EQ(loss.dtype(), DType::f32);
  loss.backward();
  const double d = x.at(0) - t.at(0);  // the target is not rounded to f16
  EXPECT_NEAR(loss.item(), d * d + 4, 1e-6);
  EXPECT_NEAR(x.grad().at(1), 4, 1e-6);
}

// The gradient of a loss, as a function that has a gradient itself.
Tensor gradient_of(const std::function<Tensor(const Tensor&)>& loss, const Tensor& x) {
  const GradGuard guard;
  Tensor leaf = x.detach();
  leaf.require_grad();
  backward(loss(leaf), BackwardOptions{.create_graph = true});
  const Tensor gradient = leaf.grad() * 1.0;
  leaf.zero_grad();
  sum(gradient * gradient).backward();  // by the second derivatives
  return leaf.grad();
}

TEST(Losses, SecondDerivatives) {
  const Tensor t = from_values({0.2, 0.6, 0.7, 0.4}, {4}, DType::f64);
  const Tensor x = from_values({0.35, 0.15, 0.9, 0.55}, {4}, DType::f64);
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> losses = {
      {"mse", [&](const Tensor& v) { return mse_loss(v, t); }},
      {"smooth_l1", [&](const Tensor& v) { return smooth_l1_loss(v, t, 0.22); }},
      {"huber", [&](const Tensor& v) { return huber_loss(v, t, 0.22); }},
      {"bce", [&](const Tensor& v) { return bce(v, t, {.weight = t}); }},
      {"bce_with_logits",
       [&](const Tensor& v) { return bce_with_logits(v, t, {.pos_weight = t}); }},
      {"kl_div target", [&](const Tensor& v) { return kl_div(t, v); }},
      {"kl_div log target", [&](const Tensor& v) { return kl_div(t, v, {.log_target = true}); }},
  };
  for (const auto& [name, loss] : losses) {
    // sum g^2 at two points beside x, where g is the gradient of the fused kernel.
    const auto squares = [&loss = loss](const Tensor& at) {
      Tensor leaf = at.detach();
      leaf.require_grad();
      loss(leaf).backward();
      return sum(square(leaf.grad().detach())).item();
    };
    const Tensor analytic = gradient_of(loss, x);
    for (int64_t i = 0; i < x.numel(); ++i) {
      double side[2];
      for (int k = 0; k < 2; ++k) {
        Tensor moved = empty_like(x);
        moved.copy_(x);
        moved.data<double>()[i] += k ? 1e-6 : -1e-6;
        side[k] = squares(moved);
      }
      EXPECT_NEAR(analytic.at(i), (side[1] - side[0]) / 2e-6, 1e-6) << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace binade::nn::losses_test
