// Metrics over ranks have the bits of one process with all the data, for every rule about uneven
// shards.
#include <binade/data/loader.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/dist/job/threads.h>
#include <binade/train/metrics/accuracy.h>
#include <binade/train/metrics/auroc.h>
#include <binade/train/metrics/confusion_matrix.h>
#include <binade/train/metrics/f1.h>
#include <binade/train/metrics/perplexity.h>
#include <binade/train/metrics/regression.h>

#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::metric_ranks_test {
namespace {

using Metrics = std::vector<MetricPtr>;

Metrics all_metrics() {
  return {Accuracy(),
          TopK(2),
          ConfusionMatrix(3),
          F1(),
          AUROC(),
          Perplexity(),
          MeanAbsoluteError({.output = "y", .target = "y"}),
          MeanSquaredError({.output = "y", .target = "y"}),
          R2(R2Average::uniform, {.output = "y", .target = "y"})};
}

std::vector<double> values_of(const Metrics& metrics) {
  std::vector<double> values;
  for (const MetricPtr& metric : metrics) {
    for (const auto& [name, value] : metric->values()) {
      values.push_back(value);
    }
  }
  return values;
}

// Reads the whole shard into metrics.
Metrics fed(const data::Dataset& set, const data::LoaderOptions& options) {
  Metrics metrics = all_metrics();
  data::Loader loader(set, options);
  for (const data::Batch& batch : loader.epoch(0)) {
    const StepOutput step{
        .loss = {}, .output = batch["scores"], .outputs = {{"y", batch["guess"]}}};
    for (const MetricPtr& metric : metrics) {
      metric->update(step, batch);
    }
  }
  return metrics;
}

TEST(MetricRanks, EveryRuleForUnevenShards) {
  manual_seed(11);
  for (const int64_t samples : {2, 13, 16}) {
    const data::TensorDataset set({{"scores", randn({samples, 3})},
                                   {"labels", randint(0, 3, {samples})},
                                   {"y", randn({samples, 2})},
                                   {"guess", randn({samples, 2})}});
    const std::vector<double> expected =
        values_of(fed(set, {.batch = 4, .workers = 0, .shuffle = false}));
    for (const int ranks : {2, 3, 4}) {
      for (const data::UnevenShards rule : {data::UnevenShards::pad, data::UnevenShards::keep}) {
        dist::run_threads(ranks, [&](dist::Communicator& group) {
          const Metrics own = fed(set, {.batch = 3,
                                        .workers = 0,
                                        .seed = 5,
                                        .shard = group.rank(),
                                        .shard_count = ranks,
                                        .uneven_shards = rule});
          for (const MetricPtr& metric : own) {
            metric->reduce(group);
          }
          const std::vector<double> values = values_of(own);
          ASSERT_EQ(values.size(), expected.size());
          for (size_t i = 0; i < values.size(); ++i) {
            EXPECT_TRUE(values[i] == expected[i] ||
                        (std::isnan(values[i]) && std::isnan(expected[i])))
                << own[i]->name() << " " << values[i] << " " << expected[i] << " of " << samples
                << " on " << ranks;
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace binade::train::metric_ranks_test
