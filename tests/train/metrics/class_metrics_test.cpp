// Tests metrics of classification: layouts, masks, ignored targets, NaN, empty data, wrong uses.
// metric_cases_test.cpp has their values.
#include <binade/train/metrics/accuracy.h>
#include <binade/train/metrics/auroc.h>
#include <binade/train/metrics/confusion_matrix.h>
#include <binade/train/metrics/f1.h>
#include <binade/train/metrics/perplexity.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/error_of.h"
#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::class_metrics_test {
namespace {

using test::batch_of;
using test::devices;
using test::kNaN;
using test::update;

Tensor classes_of(std::initializer_list<int64_t> classes, const Dims& sizes) {
  return Tensor::from(classes, sizes);
}

// Makes one of each metric, for scores of three classes.
std::vector<std::shared_ptr<TargetMetric>> one_of_each(const std::string& target = "labels",
                                                       const std::string& mask = "",
                                                       int class_dim = 1) {
  const ClassMetricOptions options{.target = target, .mask = mask, .class_dim = class_dim};
  return {
      std::make_shared<Accuracy>(options),
      std::make_shared<TopK>(2, options),
      std::make_shared<ConfusionMatrix>(3, options),
      std::make_shared<F1>(F1Average::macro, options),
      std::make_shared<F1>(F1Average::micro, options),
      std::make_shared<F1>(F1Average::weighted, options),
      std::make_shared<AUROC>(AUROCOptions{.target = target, .mask = mask, .class_dim = class_dim}),
      std::make_shared<Perplexity>(
          PerplexityOptions{.target = target, .mask = mask, .class_dim = class_dim})};
}

struct Sequences {
  Tensor logits = randn({5, 3, 4});       // [N, C, T]
  Tensor target = randint(0, 3, {5, 4});  // [N, T]
  Tensor mask = gt(rand({5, 4}), 0.4);    // [N, T]
};

std::vector<double> values_of(const std::vector<std::shared_ptr<TargetMetric>>& metrics) {
  std::vector<double> values;
  for (const auto& metric : metrics) {
    values.push_back(metric->value());
  }
  return values;
}

TEST(ClassMetrics, EveryLayoutGivesTheSame) {
  manual_seed(1);
  for (const Device device : devices()) {
    const Sequences s;
    const auto feed = [&](const Tensor& logits, const Tensor& target, int class_dim) {
      const auto metrics = one_of_each("labels", "", class_dim);
      for (const auto& metric : metrics) {
        update(*metric, logits.to(device), target);
      }
      return values_of(metrics);
    };
    const std::vector<double> expected = feed(s.logits, s.target, 1);
    const Tensor last = movedim(s.logits, 1, -1);  // [N, T, C], strided
    EXPECT_EQ(feed(last, s.target, -1), expected);
    EXPECT_EQ(feed(reshape(last, {20, 3}), s.target, 1), expected);
    EXPECT_EQ(feed(reshape(last, {20, 3}), reshape(s.target, {20}), -1), expected);
    EXPECT_EQ(feed(s.logits, s.target.to(DType::i32), 1), expected);
    EXPECT_EQ(feed(s.logits, s.target.to(DType::u8), 1), expected);
    const Tensor soft = movedim(one_hot(s.target, 3), -1, 1).to(DType::f32);
    const std::vector<double> by_shares = feed(s.logits, soft, 1);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(by_shares[i], expected[i], 1e-6) << i;
    }
  }
}

TEST(ClassMetrics, MasksAndIgnoredTargetsDoNotCount) {
  manual_seed(2);
  for (const Device device : devices()) {
    const Sequences s;
    // The masked-in positions as a plain [M, C].
    const Tensor flat = reshape(movedim(s.logits, 1, -1), {20, 3});
    std::vector<Tensor> kept_rows, kept_classes;
    for (int64_t i = 0; i < 20; ++i) {
      if (reshape(s.mask, {20}).at(i) != 0) {
        kept_rows.push_back(flat[i]);
        kept_classes.push_back(reshape(s.target, {20})[i]);
      }
    }
    const auto plain = one_of_each(), masked = one_of_each("y", "own"), ignored = one_of_each();
    data::Batch batch = batch_of("y", s.target);
    batch.set("own", s.mask);
    // Masked-out positions may hold any value.
    const Tensor dirty = where(unsqueeze(s.mask, 1), s.logits, kNaN).to(device);
    for (size_t i = 0; i < plain.size(); ++i) {
      update(*plain[i], stack(kept_rows).to(device), stack(kept_classes));
      masked[i]->update({.loss = {}, .output = dirty}, batch);
      update(*ignored[i], dirty, masked_fill(s.target, logical_not(s.mask), -100));
    }
    EXPECT_EQ(values_of(masked), values_of(plain));
    EXPECT_EQ(values_of(ignored), values_of(plain));
  }
}

TEST(ClassMetrics, AMaskOfSamplesAndRepeatedSamples) {
  manual_seed(3);
  const Sequences s;
  const auto plain = one_of_each(), masked = one_of_each("labels", "own"), cut = one_of_each();
  data::Batch batch = batch_of("labels", s.target);
  batch.set("own", lt(arange(5), 3.0));
  data::Batch padded = batch_of("labels", s.target);
  padded.repeated = 2;
  for (size_t i = 0; i < plain.size(); ++i) {
    update(*plain[i], narrow(s.logits, 0, 0, 3), narrow(s.target, 0, 0, 3));
    masked[i]->update({.loss = {}, .output = s.logits}, batch);
    cut[i]->update({.loss = {}, .output = s.logits}, padded);
  }
  EXPECT_EQ(values_of(masked), values_of(plain));
  EXPECT_EQ(values_of(cut), values_of(plain));
  // Both masks together, and scores whose positions are flat.
  Accuracy both({.mask = "own"}), flat({.mask = "own"}), expected;
  padded.set("own", s.mask);
  both.update({.loss = {}, .output = s.logits}, padded);
  flat.update({.loss = {}, .output = reshape(movedim(s.logits, 1, -1), {20, 3})}, padded);
  expected.add(narrow(s.logits, 0, 0, 3), narrow(s.target, 0, 0, 3), narrow(s.mask, 0, 0, 3));
  EXPECT_EQ(both.value(), expected.value());
  EXPECT_EQ(flat.value(), expected.value());
}

TEST(ClassMetrics, OfNothingAreNaN) {
  for (const auto& metric : one_of_each()) {
    EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
    update(*metric, empty({0, 3}), empty({0}, DType::i64));
    EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
    update(*metric, randn({2, 3}), full({2}, -100, DType::i64));
    EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
  }
}

TEST(ClassMetrics, NaNNeverHides) {
  manual_seed(4);
  for (const Device device : devices()) {
    for (const auto& metric : one_of_each()) {
      const Tensor scores = randn({6, 3}), target = classes_of({0, 1, 2, 0, 1, 2}, {6});
      update(*metric, scores.to(device), target);
      EXPECT_FALSE(std::isnan(metric->value())) << metric->name();
      Tensor bad = scores.clone();
      bad[4][2].fill_(kNaN);
      update(*metric, bad.to(device), target);
      EXPECT_TRUE(std::isnan(metric->value())) << metric->name() << to_string(device);
      metric->reset();
      update(*metric, scores.to(device), target);
      EXPECT_FALSE(std::isnan(metric->value())) << metric->name();
    }
  }
  Accuracy above({.threshold = 0});
  update(above, from_values({1, kNaN}, {2}), classes_of({1, 0}, {2}));
  EXPECT_TRUE(std::isnan(above.value()));
}

TEST(ClassMetrics, ClassesOutOfRangeAreAnError) {
  for (const Device device : devices()) {
    for (const auto& metric : one_of_each()) {
      const std::string error = error_of([&] {
        update(*metric, randn({3, 3}).to(device), classes_of({0, 3, 1}, {3}));
        (void)metric->value();
      });
      EXPECT_EQ(error.find(metric->name() + ": got "), 0U) << error;
      EXPECT_NE(
          error.find(device.is_cpu() ? "got class 3 in the target (element 1), expected 0 to 2"
                                     : "got 1 classes that are out of range"),
          std::string::npos)
          << error;
      if (device.is_cpu()) {
        EXPECT_TRUE(std::isnan(metric->value())) << "something was added";
      }
    }
  }
}

TEST(ClassMetrics, WrongInputsAreOneError) {
  Accuracy accuracy;
  const auto error = [](TargetMetric& metric, const Tensor& output, const Tensor& target) {
    const std::string text = error_of([&] { update(metric, output, target); });
    EXPECT_EQ(text.find(metric.name() + ": got "), 0U) << text;
    return text;
  };
  const Tensor scores = randn({4, 3}), target = zeros({4}, DType::i64);
  EXPECT_NE(error(accuracy, scores, zeros({4}))
                .find("target f32 [4] for output f32 [4, 3], expected "
                      "integer classes [4]"),
            std::string::npos);
  EXPECT_NE(
      error(accuracy, scores, zeros({5}, DType::i64)).find("target i64 [5] for scores f32 [4, 3]"),
      std::string::npos);
  EXPECT_NE(error(accuracy, randn({4, 1}), target).find("set the option threshold"),
            std::string::npos);
  EXPECT_NE(error(accuracy, randn({4}), target).find("set the option threshold"),
            std::string::npos);
  EXPECT_NE(error(accuracy, Tensor(), target).find("no output"), std::string::npos);
  TopK top(4);
  EXPECT_NE(error(top, scores, target).find("scores of 3 classes, expected at least k = 4"),
            std::string::npos);
  EXPECT_NE(error(top, target, target).find("output of classes"), std::string::npos);
  ConfusionMatrix confusion({"a", "b"});
  EXPECT_NE(error(confusion, scores, target).find("expected scores of 2 classes"),
            std::string::npos);
  F1 binary(F1Average::binary), f1;
  EXPECT_NE(error(binary, scores, target).find("3 classes, expected two"), std::string::npos);
  EXPECT_NE(error(f1, target, target).find("the number of classes in the options"),
            std::string::npos);
  update(f1, scores, target);
  EXPECT_NE(error(f1, randn({4, 5}), target).find("got 5 classes after 3"), std::string::npos);
  Accuracy above({.threshold = 0.5});
  EXPECT_NE(error(above, rand({4}), from_values({0, 1, 0.5, 1}, {4})).find("neither 0 nor 1"),
            std::string::npos);
  EXPECT_NE(error(above, rand({4, 2}), target).find("one 0 or 1 for each score"),
            std::string::npos);
  Perplexity perplexity;
  EXPECT_NE(error(perplexity, target, target).find("expected floating scores"), std::string::npos);
  AUROC multilabel({.multilabel = true});
  EXPECT_NE(error(multilabel, scores, target).find("target i64 [4]"), std::string::npos);
}

TEST(ClassMetrics, FieldsAreNamedInErrors) {
  data::Batch batch = batch_of("y", zeros({2}, DType::i64));
  batch.set("x", randn({2, 3}));
  const StepOutput step{.loss = {}, .output = randn({2, 3}), .outputs = {{"head", randn({2, 4})}}};
  const auto error = [&](const ClassMetricOptions& options) {
    return error_of([&] { Accuracy(options).update(step, batch); });
  };
  EXPECT_NE(error({}).find("accuracy: got a batch without field 'labels' for the target, expected "
                           "one of y, x"),
            std::string::npos);
  EXPECT_NE(error({.output = "tail", .target = "y"}).find("without output 'tail'"),
            std::string::npos);
  EXPECT_NE(error({.target = "y", .mask = "m"}).find("without field 'm' for the mask"),
            std::string::npos);
  EXPECT_NE(error({.target = "y", .mask = "x"}).find("got a mask of f32, expected bool"),
            std::string::npos);
  Accuracy head({.name = "head_accuracy", .output = "head", .target = "y"});
  head.update(step, batch);
  EXPECT_EQ(head.values()[0].first, "head_accuracy");
}

TEST(TopK, TiesGoToTheFirstClasses) {
  const Tensor scores = from_values({1, 1, 1, 0}, {1, 4});
  for (int64_t target = 0; target < 4; ++target) {
    for (int64_t k = 1; k <= 4; ++k) {
      TopK top(k);
      update(top, scores, classes_of({target}, {1}));
      EXPECT_EQ(top.value(), target < k ? 1 : 0) << target << " " << k;
      EXPECT_EQ(top.name(), text("top", k));
    }
  }
}

TEST(Accuracy, OfOutputsThatAreClasses) {
  Accuracy accuracy;
  ConfusionMatrix confusion(3);
  F1 f1(F1Average::micro, {.classes = 3});
  const Tensor output = classes_of({0, 1, 2, 2}, {2, 2}), target = classes_of({0, 1, 1, 2}, {2, 2});
  for (TargetMetric* metric :
       {static_cast<TargetMetric*>(&accuracy), static_cast<TargetMetric*>(&confusion),
        static_cast<TargetMetric*>(&f1)}) {
    update(*metric, output, target);
  }
  EXPECT_EQ(accuracy.value(), 0.75);
  EXPECT_EQ(f1.value(), 0.75);
  EXPECT_EQ(confusion.count(1, 2), 1);
  EXPECT_NE(error_of([&] {
              update(confusion, classes_of({3}, {1}), classes_of({0}, {1}));
            }).find("got class 3 in the output (element 0), expected 0 to 2"),
            std::string::npos);
}

TEST(ConfusionMatrix, PrintsATable) {
  ConfusionMatrix confusion({"cat", "dog\n", "owl"});
  EXPECT_TRUE(std::isnan(confusion.accuracy()));
  update(confusion, classes_of({0, 0, 1, 0}, {4}), classes_of({0, 0, 1, 1}, {4}));
  EXPECT_EQ(confusion.report(),
            "target \\ predicted  cat  dog\\x0a  owl  samples  precision  recall\n"
            "cat                 2    0        0    2        0.6667     1.0000\n"
            "dog\\x0a             1    1        0    2        1.0000     0.5000\n"
            "owl                 0    0        0    0        nan        nan\n");
  EXPECT_EQ(confusion.value(), 0.75);  // over the two classes with samples
  EXPECT_EQ(confusion.accuracy(), 0.75);
  EXPECT_EQ(confusion.f1(1), 2.0 / 3);
  EXPECT_TRUE(std::isnan(confusion.precision(2)));
  EXPECT_EQ(confusion.counts(), (std::vector<int64_t>{2, 0, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_NE(error_of([&] { (void)confusion.recall(3); }).find("got class 3 in recall()"),
            std::string::npos);
  update(confusion, from_values({kNaN, 0, 0}, {1, 3}), classes_of({0}, {1}));
  EXPECT_NE(confusion.report().find("not a number"), std::string::npos);
  EXPECT_TRUE(std::isnan(confusion.value()));
}

TEST(ConfusionMatrix, OfManyClassesListsTheMostConfused) {
  ConfusionMatrix confusion(30);
  update(confusion, classes_of({5, 5, 5, 7}, {4}), classes_of({4, 4, 5, 4}, {4}));
  const std::string report = confusion.report();
  EXPECT_EQ(report.find("target  samples  precision  recall\n"), 0U);
  EXPECT_TRUE(report.ends_with(
      "Most confused:\ntarget  predicted  samples\n4       5          2\n4       7          1\n"))
      << report;
}

TEST(ConfusionMatrix, WrongNamesAreAnError) {
  EXPECT_NE(error_of([] { ConfusionMatrix({"one"}); }).find("1 names"), std::string::npos);
  EXPECT_NE(error_of([] { ConfusionMatrix(1); }).find("1 classes"), std::string::npos);
  EXPECT_NE(error_of([] { ConfusionMatrix(3, {.threshold = 0}); }).find("a threshold"),
            std::string::npos);
  EXPECT_NE(error_of([] { ConfusionMatrix(3, {.classes = 2}); }).find("classes = 2"),
            std::string::npos);
  EXPECT_NE(error_of([] { TopK(0); }).find("got k = 0"), std::string::npos);
  EXPECT_NE(error_of([] { TopK(1, {.threshold = 0}); }).find("threshold"), std::string::npos);
}

TEST(F1, ClassesThatAreNeverSeenAreLeftOut) {
  F1 macro, weighted(F1Average::weighted);
  const Tensor scores = from_values({9, 0, 0, 9, 0, 0, 0, 9, 0}, {3, 3});
  const Tensor target = classes_of({0, 1, 1}, {3});
  update(macro, scores, target);
  update(weighted, scores, target);
  EXPECT_TRUE(std::isnan(macro.per_class()[2]));
  EXPECT_NEAR(macro.value(), 2.0 / 3, 1e-15);
  EXPECT_NEAR(weighted.value(), 2.0 / 3, 1e-15);
  // A class that is predicted but never correct gives 0, and it counts.
  update(macro, from_values({0, 0, 9}, {1, 3}), classes_of({0}, {1}));
  EXPECT_EQ(macro.per_class()[2], 0);
  EXPECT_NEAR(macro.value(), (1.0 / 2 + 2.0 / 3 + 0) / 3, 1e-15);
}

TEST(AUROC, TiesOneClassAndSeparation) {
  AUROC auroc;
  update(auroc, from_values({0.5, 0.5}, {2}), classes_of({0, 1}, {2}));
  EXPECT_EQ(auroc.value(), 0.5);
  auroc.reset();
  update(auroc, from_values({1, 2}, {2, 1}), classes_of({1, 1}, {2}));
  EXPECT_TRUE(std::isnan(auroc.value()));  // there is no negative sample
  update(auroc, from_values({-INFINITY, INFINITY}, {2, 1}), from_values({0, 1}, {2}));
  EXPECT_EQ(auroc.value(), 1);
  EXPECT_EQ(auroc.per_class().size(), 1U);
}

TEST(AUROC, TwoColumnsAreOneScore) {
  manual_seed(5);
  const Tensor logits = randn({40, 2}), target = randint(0, 2, {40});
  AUROC two, one, shares({.probabilities = true});
  update(two, logits, target);
  const Tensor wide = logits.to(DType::f64);
  update(one, sub(select(wide, 1, 1), select(wide, 1, 0)), target);
  update(shares, softmax(wide, 1), target);
  EXPECT_EQ(two.value(), one.value());
  EXPECT_EQ(shares.value(), one.value());
}

TEST(AUROC, LogitsAndProbabilitiesAreNotMixedUp) {
  manual_seed(6);
  const Tensor logits = randn({20, 3}), target = randint(0, 3, {20});
  for (const Device device : devices()) {
    AUROC auroc, shares({.probabilities = true});
    Perplexity perplexity;
    update(auroc, softmax(logits, 1).to(device), target);
    update(shares, logits.to(device), target);
    update(perplexity, softmax(logits, 1).to(device), target);
    EXPECT_NE(error_of([&] { (void)auroc.value(); }).find("seem to be probabilities"),
              std::string::npos);
    EXPECT_NE(error_of([&] { (void)shares.value(); }).find("scores below 0 or above 1"),
              std::string::npos);
    EXPECT_NE(error_of([&] { (void)perplexity.value(); }).find("seem to be probabilities"),
              std::string::npos);
  }
}

TEST(Perplexity, OfTheLoss) {
  Perplexity perplexity({.from_loss = true});
  data::Batch batch;
  batch.size = 3;
  perplexity.update({.loss = from_values({std::log(2.0)}, {}, DType::f64)}, batch);
  batch.size = 1;
  perplexity.update({.loss = from_values({std::log(32.0)}, {1}, DType::f64)}, batch);
  EXPECT_NEAR(perplexity.value(), 4, 1e-14);
  perplexity.update({.loss = from_values({0}, {}, DType::f64), .weight = 4}, batch);
  EXPECT_NEAR(perplexity.value(), 2, 1e-14);
  EXPECT_NE(error_of([&] { Perplexity().update({.loss = ones({})}, batch); }).find("from_loss"),
            std::string::npos);
}

}  // namespace
}  // namespace binade::train::class_metrics_test
