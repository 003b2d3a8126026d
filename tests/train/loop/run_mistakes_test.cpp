// Mistakes of a program with the Trainer: each is one error that says what to do, before a wrong
// step.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::run_mistakes_test {
namespace {

using binade::testing::TemporaryDirectory;
using namespace toy;

// Of a value whose better direction is known, the other one would keep the worst weights.
TEST(RunMistakes, AModeAgainstTheMonitoredValueIsAnError) {
  for (const auto& [monitor, mode, part] :
       {std::tuple{"", Mode::max, "'validation_loss' with Mode::max, but smaller values"},
        {"train_mae", Mode::max, "'train_mae' with Mode::max, but smaller values"},
        {"validation_top5", Mode::min, "'validation_top5' with Mode::min, but larger values"}}) {
    const std::string error =
        error_of([&] { ToyRun({.epochs = 1, .monitor = monitor, .mode = mode}); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  ToyRun({.epochs = 1, .monitor = "validation_mae", .mode = Mode::min});
}

}  // namespace
}  // namespace binade::train::run_mistakes_test
