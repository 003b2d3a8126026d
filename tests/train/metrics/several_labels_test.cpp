// Class metrics given several labels at once.
#include <binade/train/metrics/accuracy.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/train/metrics/metric_inputs.h"

namespace binade::train::several_labels_test {
namespace {

using test::devices;
using test::update;

// Scores of 0 and 1 for several labels are no probabilities: argmax would always pick the first 1.
TEST(ClassMetrics, SeveralLabelsWithoutAThresholdAreAnError) {
  manual_seed(6);
  const Tensor several = from_values({1, 0, 0, 1, 0, 1, 0, 1, 0}, {3, 3});
  const Tensor none = from_values({1, 0, 0, 0, 0, 0, 0, 1, 0}, {3, 3});
  for (const Device device : devices()) {
    for (const Tensor& target : {several, none, none * 2.0 - several}) {
      Accuracy accuracy;
      const std::string error = error_of([&] {
        update(accuracy, randn({3, 3}).to(device), target.to(device));
        (void)accuracy.value();
      });
      EXPECT_NE(error.find(device.is_cpu() ? "set the option threshold"
                                           : "got 1 classes that are out of range"),
                std::string::npos)
          << error;
    }
    Accuracy soft, labels({.threshold = 0});
    update(soft, randn({3, 3}).to(device), softmax(randn({3, 3}), 1).to(DType::f16).to(device));
    update(labels, randn({3, 3}).to(device), several.to(device));
    EXPECT_FALSE(std::isnan(soft.value()) || std::isnan(labels.value()));
  }
}

}  // namespace
}  // namespace binade::train::several_labels_test
