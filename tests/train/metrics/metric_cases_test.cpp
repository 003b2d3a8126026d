// Compares metrics with scikit-learn's results in cases.txt, written by generate_cases.py. Each
// case runs at once, in batches, and on every device.
#include <binade/train/metrics/accuracy.h>
#include <binade/train/metrics/auroc.h>
#include <binade/train/metrics/confusion_matrix.h>
#include <binade/train/metrics/f1.h>
#include <binade/train/metrics/perplexity.h>
#include <binade/train/metrics/regression.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::metric_cases_test {
namespace {

using test::devices;
using test::rows;

struct Data {
  std::string name;
  Tensor scores, targets;  // f64 [N, C], f64 [N, L]
  std::vector<std::pair<std::string, std::vector<double>>> values;
};

void PrintTo(const Data& data, std::ostream* out) { *out << data.name; }

double number_of(std::istream& in) {
  std::string word;
  in >> word;
  return std::stod(word);  // operator>> has no nan
}

std::vector<double> numbers_of(std::istream& in, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(number_of(in));
  }
  return numbers;
}

std::vector<Data> read_cases() {
  std::ifstream in(BINADE_SOURCE_DIR "/tests/train/metrics/cases.txt");
  std::string line, word;
  std::getline(in, line);
  std::vector<Data> all;
  while (in >> word) {
    std::string name;
    int64_t a = 0, b = 0;
    if (word == "data") {
      all.emplace_back();
      in >> all.back().name;
    } else if (word == "value") {
      in >> name >> a;
      all.back().values.emplace_back(name, numbers_of(in, a));
    } else {
      in >> a >> b;
      (word == "scores" ? all.back().scores : all.back().targets) =
          Tensor::from(numbers_of(in, a * b), {a, b});
    }
  }
  return all;
}

// A metric and the values to compare.
struct Tried {
  std::shared_ptr<TargetMetric> metric;
  std::function<std::vector<double>()> values;
};

template <class M>
Tried tried(M metric) {
  auto shared = std::make_shared<M>(metric);
  return {shared, [shared] { return std::vector<double>{shared->value()}; }};
}

Tried confusion(int64_t classes, const std::string& what, const ClassMetricOptions& options = {}) {
  auto metric = std::make_shared<ConfusionMatrix>(classes, options);
  return {metric, [metric, what] {
            std::vector<double> all;
            if (what == "counts") {
              const std::vector<int64_t> counts = metric->counts();
              return std::vector<double>(counts.begin(), counts.end());
            }
            for (int64_t c = 0; c < metric->classes(); ++c) {
              all.push_back(what == "precision" ? metric->precision(c) : metric->recall(c));
            }
            return all;
          }};
}

Tried metric_for(const std::string& name, int64_t classes) {
  const ClassMetricOptions above_0{.threshold = 0};
  const std::map<std::string, std::function<Tried()>> all = {
      {"accuracy", [] { return tried(Accuracy()); }},
      {"top1", [] { return tried(TopK(1)); }},
      {"top2", [] { return tried(TopK(2)); }},
      {"top3", [] { return tried(TopK(3)); }},
      {"confusion", [&] { return confusion(classes, "counts"); }},
      {"precision", [&] { return confusion(classes, "precision"); }},
      {"recall", [&] { return confusion(classes, "recall"); }},
      {"balanced_accuracy", [&] { return tried(ConfusionMatrix(classes)); }},
      {"f1_macro", [] { return tried(F1()); }},
      {"f1_micro", [] { return tried(F1(F1Average::micro)); }},
      {"f1_weighted", [] { return tried(F1(F1Average::weighted)); }},
      {"perplexity", [] { return tried(Perplexity()); }},
      {"auroc", [] { return tried(AUROC()); }},
      {"auroc_probabilities", [] { return tried(AUROC({.probabilities = true})); }},
      {"binary_accuracy", [&] { return tried(Accuracy(above_0)); }},
      {"binary_f1_binary", [&] { return tried(F1(F1Average::binary, above_0)); }},
      {"binary_f1_macro", [&] { return tried(F1(F1Average::macro, above_0)); }},
      {"binary_confusion", [&] { return confusion(2, "counts", above_0); }},
      {"binary_auroc", [] { return tried(AUROC()); }},
      {"multilabel_accuracy", [&] { return tried(Accuracy(above_0)); }},
      {"multilabel_f1_macro", [&] { return tried(F1(F1Average::macro, above_0)); }},
      {"multilabel_f1_micro", [&] { return tried(F1(F1Average::micro, above_0)); }},
      {"multilabel_f1_weighted", [&] { return tried(F1(F1Average::weighted, above_0)); }},
      {"multilabel_auroc", [] { return tried(AUROC({.multilabel = true})); }},
      {"mae", [] { return tried(MeanAbsoluteError()); }},
      {"mse", [] { return tried(MeanSquaredError()); }},
      {"rmse", [] { return tried(RootMeanSquaredError()); }},
      {"r2_uniform", [] { return tried(R2()); }},
      {"r2_variance_weighted", [] { return tried(R2(R2Average::variance_weighted)); }}};
  return all.at(name)();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
    if (!std::isnan(expected[i])) {
      EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }
}

class MetricCases : public ::testing::TestWithParam<Data> {};

TEST_P(MetricCases, GiveTheValuesOfScikitLearn) {
  const Data& data = GetParam();
  const int64_t n = data.scores.size(0);
  const bool is_class =
      !data.name.starts_with("regression") && data.name != "columns" && data.name != "far";
  const bool single = data.targets.size(1) == 1 && data.scores.size(1) > 1;
  Tensor targets = is_class ? data.targets.to(DType::i64) : data.targets;
  targets = single ? reshape(targets, {n}) : targets;
  ASSERT_FALSE(data.values.empty());
  for (const auto& [name, expected] : data.values) {
    for (const Device device : devices()) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        for (const int64_t batch : {n, int64_t{7}, int64_t{1}}) {
          if (batch == 1 && !device.is_cpu()) {
            continue;  // it would take seconds
          }
          SCOPED_TRACE(text(name, " on ", device, " in ", dtype, ", batches of ", batch));
          const Tried tried = metric_for(name, data.scores.size(1));
          const Tensor scores = data.scores.to(dtype).to(device);
          for (int64_t i = 0; i < n; i += batch) {
            const int64_t end = std::min(i + batch, n);
            test::update(*tried.metric, rows(scores, i, end), rows(targets, i, end));
          }
          expect_near(tried.values(), expected,
                      name == "perplexity" && dtype == DType::f32 ? 1e-6 : 1e-13);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ScikitLearn, MetricCases, ::testing::ValuesIn(read_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(MetricCaseFile, HasAllMetrics) {
  std::set<std::string> names;
  for (const Data& data : read_cases()) {
    for (const auto& [name, values] : data.values) {
      names.insert(name);
    }
  }
  EXPECT_EQ(names.size(), 29U);
}

}  // namespace
}  // namespace binade::train::metric_cases_test
