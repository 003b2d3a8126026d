// Tests metrics of regression: exactness, shapes, masks, empty data, wrong uses.
// metric_cases_test.cpp has their values.
#include <binade/train/metrics/regression.h>

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::regression_metrics_test {
namespace {

using test::batch_of;
using test::devices;
using test::kNaN;
using test::rows;
using test::update;

std::vector<std::shared_ptr<TargetMetric>> one_of_each(const RegressionOptions& options = {}) {
  return {std::make_shared<MeanAbsoluteError>(options), std::make_shared<MeanSquaredError>(options),
          std::make_shared<RootMeanSquaredError>(options),
          std::make_shared<R2>(R2Average::uniform, options)};
}

TEST(RegressionMetrics, HaveTheSameBitsForEverySplit) {
  manual_seed(1);
  const Tensor output = randn({97, 3}), target = add(randn({97, 3}), 1000.0);
  std::vector<double> expected;
  for (const int64_t batch : {97, 1, 10, 64}) {
    std::vector<double> values;
    for (const auto& metric : one_of_each()) {
      for (int64_t i = 0; i < 97; i += batch) {
        const int64_t end = std::min<int64_t>(i + batch, 97);
        update(*metric, rows(output, i, end), rows(target, i, end));
      }
      values.push_back(metric->value());
    }
    expected = expected.empty() ? values : expected;
    EXPECT_EQ(values, expected) << batch;
  }
}

TEST(RegressionMetrics, AgreeOnAllDevices) {
  manual_seed(2);
  const Tensor output = randn({33, 2}, DType::f64),
               target = add(output, randn({33, 2}, DType::f64));
  const auto host = one_of_each();
  for (const Device device : devices()) {
    const auto own = one_of_each();
    for (size_t i = 0; i < own.size(); ++i) {
      if (device.is_cpu()) {
        update(*host[i], output, target);
      }
      update(*own[i], rows(output, 0, 20).to(device), rows(target, 0, 20));
      update(*own[i], rows(output, 20, 33).to(device), rows(target, 20, 33).to(device));
      EXPECT_NEAR(own[i]->value(), host[i]->value(), 1e-14) << i;
    }
  }
}

// For targets far from 0 with a small spread, the sums of squares cancel.
TEST(R2, KeepsItsDigitsFarFromZero) {
  manual_seed(3);
  const Tensor near = randn({50}, DType::f64),
               output = add(near, mul(randn({50}, DType::f64), 0.1));
  R2 reference;
  update(reference, output, near);
  for (const Device device : devices()) {
    for (const double offset : {0x1p20, 0x1p40}) {
      R2 far;
      const Tensor moved_target = add(near, offset), moved = add(output, offset);
      R2 expected;  // from the numbers after rounding
      update(expected, add(moved, -offset), add(moved_target, -offset));
      for (int64_t i = 0; i < 50; i += 8) {
        const int64_t end = std::min<int64_t>(i + 8, 50);
        update(far, rows(moved, i, end).to(device), rows(moved_target, i, end).to(device));
      }
      EXPECT_NEAR(far.value(), expected.value(), 1e-12) << offset << " " << to_string(device);
    }
  }
}

TEST(R2, OfEqualTargetsAndOfOne) {
  R2 wrong;
  update(wrong, from_values({2}, {1}), from_values({1}, {1}));
  EXPECT_TRUE(std::isnan(wrong.value()));  // one sample
  for (const double t : {0.1, 3.0, 1e100}) {
    R2 r2;
    update(r2, from_values({t}, {1}, DType::f64), from_values({t}, {1}, DType::f64));
    EXPECT_TRUE(std::isnan(r2.value()));  // one sample
    update(r2, full({6}, t, DType::f64), full({6}, t, DType::f64));
    EXPECT_TRUE(std::isnan(r2.value()));  // 0 / 0
    update(r2, full({1}, 2 * t, DType::f64), full({1}, t, DType::f64));
    EXPECT_EQ(r2.value(), -INFINITY);
  }
}

TEST(R2, OfEachColumn) {
  R2 uniform, weighted(R2Average::variance_weighted);
  const Tensor target = from_values({0, 0, 2, 20}, {2, 2}),
               output = from_values({0, 0, 1, 20}, {2, 2});
  update(uniform, output, target);
  update(weighted, output, target);
  EXPECT_EQ(uniform.per_column(), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(uniform.value(), 0.75);
  EXPECT_EQ(weighted.value(), (0.5 * 2 + 1 * 200) / 202);
  EXPECT_NE(error_of([&] { update(uniform, zeros({2}), zeros({2})); }).find("1 columns after 2"),
            std::string::npos);
}

TEST(RegressionMetrics, MasksAndRepeatedSamples) {
  manual_seed(4);
  for (const Device device : devices()) {
    const Tensor output = randn({6, 4}), target = randn({6, 4});
    data::Batch padded = batch_of("labels", target);
    padded.repeated = 2;
    data::Batch masked = batch_of("labels", target);
    masked.set("own", lt(arange(6), 4.0));
    const Tensor dirty = cat({rows(output, 0, 4), full({2, 4}, kNaN)}).to(device);
    const auto plain = one_of_each(), cut = one_of_each(), by_mask = one_of_each({.mask = "own"});
    for (size_t i = 0; i < plain.size(); ++i) {
      update(*plain[i], rows(output, 0, 4).to(device), rows(target, 0, 4));
      cut[i]->update({.loss = {}, .output = dirty}, padded);
      by_mask[i]->update({.loss = {}, .output = dirty}, masked);
      EXPECT_NEAR(cut[i]->value(), plain[i]->value(), 1e-14);
      EXPECT_EQ(by_mask[i]->value(), cut[i]->value());
    }
  }
}

TEST(RegressionMetrics, NothingAndNaN) {
  for (const Device device : devices()) {
    for (const auto& metric : one_of_each()) {
      EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
      update(*metric, empty({0, 2}).to(device), empty({0, 2}));
      EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
      update(*metric, randn({5, 2}).to(device), randn({5, 2}));
      EXPECT_FALSE(std::isnan(metric->value())) << metric->name();
      update(*metric, full({1, 2}, kNaN).to(device), zeros({1, 2}));
      EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
    }
  }
}

TEST(RegressionMetrics, WrongShapesAreOneError) {
  for (const auto& metric : one_of_each()) {
    const auto error = [&](const Tensor& output, const Tensor& target) {
      const std::string text = error_of([&] { update(*metric, output, target); });
      EXPECT_EQ(text.find(metric->name() + ": got "), 0U) << text;
      return text;
    };
    EXPECT_NE(error(zeros({4, 3}), zeros({4})).find("output [4, 3] and target [4]"),
              std::string::npos);
    EXPECT_NE(error(zeros({4}), zeros({1, 4})).find("expected equal sizes"), std::string::npos);
    EXPECT_NE(error(zeros({4}, DType::i64), zeros({4})).find("output i64 [4]"), std::string::npos);
    update(*metric, zeros({4, 1}), zeros({4}));
    update(*metric, zeros({4}), zeros({4, 1}, DType::i64));
  }
  data::Batch batch = batch_of("labels", zeros({4, 2}));
  batch.set("m", ones({2, 4}, DType::boolean));
  EXPECT_NE(error_of([&] {
              MeanAbsoluteError({.mask = "m"}).update({.loss = {}, .output = zeros({4, 2})}, batch);
            }).find("mae: got a mask [2, 4] for [4, 2]"),
            std::string::npos);
}

TEST(RegressionMetrics, HalfAndIntegerInputs) {
  MeanAbsoluteError mae;
  update(mae, from_values({1.5, 2}, {2}, DType::bf16), Tensor::from({1, 4}));
  EXPECT_EQ(mae.value(), 1.25);
  MeanSquaredError mse;
  update(mse, from_values({3, 0}, {2}, DType::f16), Tensor::from({0, 0}));
  EXPECT_EQ(mse.value(), 4.5);
  EXPECT_EQ(mse.root(), std::sqrt(4.5));
}

}  // namespace
}  // namespace binade::train::regression_metrics_test
