// Tests metrics that a user defines: states, copies, ranks, checkpoints, wrong uses.
#include <binade/dist/job/threads.h>
#include <binade/train/metrics/accuracy.h>
#include <binade/train/metrics/mean_metric.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/error_of.h"
#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::metric_test {
namespace {

using test::batch_of;
using test::devices;
using test::rows;

class Bias : public Metric {
 public:
  Bias() : Metric("bias") {}
  void update(const StepOutput& step, const data::Batch& batch) override {
    error_.add(step.output - batch["y"]);
    count_.add(batch["y"].numel());
  }
  double value() const override { return error_.value() / static_cast<double>(count_.value()); }

 private:
  MetricSum error_{*this, "error"};
  MetricCount count_{*this, "count"};
};

// A metric with all kinds of state.
class Everything : public Metric {
 public:
  Everything() : Metric("everything") {}
  void update(const StepOutput& step, const data::Batch& batch) override {
    counts.add(gt(step.output, 0.0));
    sums.add(step.output);
    kept.add(batch["y"]);
  }
  NamedValues values() const override { return {{"first", sums.value(0)}, {"second", 2}}; }

  MetricCount counts{*this, "counts", 0};
  MetricSum sums{*this, "sums", 0};
  MetricRows kept{*this, "kept"};
};

void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(a[i].second.sizes(), b[i].second.sizes());
    EXPECT_EQ(a[i].second.to(DType::f64).to_vector<double>(),
              b[i].second.to(DType::f64).to_vector<double>());
  }
}

TEST(Metric, OfTheUsersOwn) {
  for (const Device device : devices()) {
    Bias bias;
    EXPECT_TRUE(std::isnan(bias.value()));  // no data yet
    bias.update({.loss = {}, .output = Tensor::from({1.0, 2.0, 4.0}, {3}, device)},
                batch_of("y", zeros({3}, DType::f64, device)));
    bias.update({.loss = {}, .output = Tensor::from({-3.0}, {1}, device)},
                batch_of("y", ones({1}, DType::f64, device)));
    EXPECT_EQ(bias.value(), 0.75);
    EXPECT_EQ(bias.values(), (NamedValues{{"bias", 0.75}}));
    EXPECT_EQ(bias.report(), "");
    bias.reset();
    EXPECT_TRUE(std::isnan(bias.value()));
  }
}

TEST(Metric, CopiesShareWhatTheyCollect) {
  Bias bias;
  const MetricPtr by_value = bias;
  const MetricPtr shared = std::make_shared<Bias>();
  const std::vector<MetricPtr> list = {Bias(), bias, shared, MetricPtr()};
  by_value->update({.loss = {}, .output = ones({2})}, batch_of("y", zeros({2})));
  EXPECT_EQ(bias.value(), 1);
  EXPECT_EQ(list[1]->value(), 1);
  EXPECT_TRUE(std::isnan(list[0]->value()));
  EXPECT_TRUE(std::isnan(list[2]->value()));
  EXPECT_FALSE(list[3]);
}

TEST(Metric, MeanOfAFunction) {
  MeanMetric mean("half", [](const StepOutput& step, const data::Batch& batch) {
    return div(sub(step.output, batch["y"]), 2.0);
  });
  mean.update({.loss = {}, .output = from_values({1, 2, 6}, {3, 1})}, batch_of("y", zeros({3, 1})));
  EXPECT_EQ(mean.values(), (NamedValues{{"half", 1.5}}));
  EXPECT_NE(error_of([] { MeanMetric("m", nullptr); }).find("m: got no function"),
            std::string::npos);
}

TEST(Metric, GoesOnWithTheSameBitsAfterAResume) {
  for (const Device device : devices()) {
    manual_seed(7);
    const Tensor x = randn({64, 3}, DType::f32, device), y = randn({64, 2}, DType::f16, device);
    const auto feed = [&](Metric& metric, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += 4) {
        metric.update({.loss = {}, .output = rows(x, i, i + 4)}, batch_of("y", rows(y, i, i + 4)));
      }
    };
    Everything whole, first, second;
    feed(whole, 0, 64);
    feed(first, 0, 28);
    second.load_state(first.state());
    expect_same(second.state(), first.state());
    feed(second, 28, 64);
    expect_same(second.state(), whole.state());
    EXPECT_EQ(second.values(), whole.values());
  }
}

TEST(Metric, RanksGetWhatOneProcessHas) {
  manual_seed(8);
  const Tensor x = randn({10, 3}), y = randn({10, 2});
  Everything whole;
  whole.update({.loss = {}, .output = x}, batch_of("y", y));
  const int64_t bounds[] = {0, 7, 7, 10};  // rank 1 has no rows
  dist::run_threads(3, [&](dist::Communicator& group) {
    const auto rank = static_cast<size_t>(group.rank());
    Everything own;
    if (bounds[rank] < bounds[rank + 1]) {
      own.update({.loss = {}, .output = rows(x, bounds[rank], bounds[rank + 1])},
                 batch_of("y", rows(y, bounds[rank], bounds[rank + 1])));
    }
    own.reduce(group);
    expect_same(own.state(), whole.state());
    EXPECT_EQ(own.values(), whole.values());
    // Continues: rank 0 keeps all, the others start again.
    if (rank > 0) {
      own.reset();
    }
    own.reduce(group);
    expect_same(own.state(), whole.state());
    Everything nothing;
    nothing.reduce(group);
    EXPECT_EQ(nothing.sums.size(), 0);
  });
}

TEST(Metric, RanksThatDifferAreOneErrorOnEachRank) {
  std::vector<std::string> errors(2);
  dist::run_threads(2, [&](dist::Communicator& group) {
    const auto rank = static_cast<size_t>(group.rank());
    Everything own;
    own.sums.add(ones({static_cast<int64_t>(2 + rank)}));
    errors[rank] = error_of([&] { own.reduce(group); });
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("metric state 'sums': got 3 numbers on one rank and 2 on another"),
              std::string::npos)
        << error;
  }
}

TEST(Metric, RefusesStatesThatDoNotFit) {
  Everything metric;
  metric.sums.add(from_values({1, 2}, {2}));
  const NamedTensors before = metric.state();
  const auto error = [&](NamedTensors state) {
    const std::string text = error_of([&] { metric.load_state(state); });
    expect_same(metric.state(), before);
    return text;
  };
  NamedTensors state = before;
  state.pop_back();
  EXPECT_NE(error(state).find("metric everything: state has no tensor 'kept'"), std::string::npos);
  state = before;
  state.emplace_back("more", zeros({1}));
  EXPECT_NE(error(state).find("got 4 tensors, expected 3"), std::string::npos);
  state = before;
  state[1].second = zeros({2, 5}, DType::i64);
  EXPECT_NE(error(state).find("'sums': got i64 [2, 5], expected i64 [n, 71]"), std::string::npos);
  state[1].second = full({2, 71}, -1, DType::i64);
  EXPECT_NE(error(state).find("'sums': got numbers that are not those of a sum"),
            std::string::npos);
  state = before;
  state[0].second = zeros({2});
  EXPECT_NE(error(state).find("'counts': got f32 [2], expected i64 [n]"), std::string::npos);
}

TEST(Metric, WrongUsesAreOneError) {
  struct TwoOfAName : Metric {
    TwoOfAName() : Metric("two") {}
    void update(const StepOutput&, const data::Batch&) override {}
    MetricCount a{*this, "a"}, b{*this, "a"};
  };
  struct NoValue : Metric {
    NoValue() : Metric("none") {}
    void update(const StepOutput&, const data::Batch&) override {}
  };
  EXPECT_NE(error_of([] { TwoOfAName(); }).find("metric two: got two states with the name 'a'"),
            std::string::npos);
  EXPECT_NE(error_of([] { (void)NoValue().values(); }).find("neither value() nor values()"),
            std::string::npos);
  Everything metric;
  EXPECT_NE(error_of([&] { metric.counts.add(ones({2})); }).find("got a tensor of f32"),
            std::string::npos);
  EXPECT_NE(error_of([&] { metric.sums.add(Tensor()); }).find("undefined"), std::string::npos);
  EXPECT_NE(error_of([&] { metric.sums.add(ones({})); }).find("expected [..., n]"),
            std::string::npos);
  metric.sums.add(ones({4, 3}));
  EXPECT_NE(error_of([&] {
              metric.sums.add(ones({3, 4}));
            }).find("[3, 4], expected [..., 3]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { metric.sums.add(1, 3); }).find("index 3"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)metric.sums.value(-1); }).find("index -1"), std::string::npos);
  EXPECT_NE(error_of([&] {
              metric.sums.add(ones({4, 3}), ones({4, 3}));
            }).find("mask"),
            std::string::npos);
  metric.kept.add(ones({2, 2}));
  EXPECT_NE(error_of([&] {
              metric.kept.add(ones({2, 3}));
            }).find("got rows f32 [2, 3] after"),
            std::string::npos);
  EXPECT_EQ(metric.sums.values(), std::vector<double>(3, 4.0));  // no partial update
}

TEST(MetricState, KeepsItsOwnCopies) {
  for (const Device device : devices()) {
    Everything metric;
    const Tensor x = ones({2, 2}, DType::f64, device);
    metric.sums.add(x);
    metric.kept.add(x);
    metric.counts.add(ones({2}, DType::i64, device));
    x.fill_(9);
    EXPECT_EQ(metric.sums.values(), (std::vector<double>{2, 2}));
    EXPECT_EQ(metric.kept.read().to_vector<double>(), (std::vector<double>{1, 1, 1, 1}));
    EXPECT_EQ(metric.counts.values(), (std::vector<int64_t>{1, 1}));
  }
}

TEST(MetricSum, ReadsADeviceAfterManyAdditions) {
  for (const Device device : devices()) {
    Everything metric;
    const Tensor one = ones({3}, DType::f32, device);
    for (int i = 0; i < 600; ++i) {
      metric.sums.add(one);
    }
    EXPECT_EQ(metric.sums.values(), std::vector<double>(3, 600.0));
  }
}

TEST(MetricSum, PartsAreExact) {
  Everything metric;
  metric.sums.add(from_values({0x1p80, 0x1p20, 0x1p-40}, {3, 1}, DType::f64));
  EXPECT_EQ(metric.sums.parts(0), (std::vector<double>{0x1p80, 0x1p20, 0x1p-40, 0}));
}

}  // namespace
}  // namespace binade::train::metric_test
