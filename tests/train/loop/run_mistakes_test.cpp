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

// The wrong mode would keep the worst weights. It is refused where the name tells the right one.
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

// In the middle of an epoch another order would bring some samples twice and others never.
TEST(RunMistakes, AResumeInMidEpochNeedsTheOrderOfItsBeginning) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  ToyRun({.max_steps = 3, .run = path}).fit();  // of 5 steps per epoch
  ToyRun again({.max_steps = 9, .run = path, .resume = true});
  data::Loader other(again.train_rows, {.batch = 8, .workers = 0, .seed = 5});
  const std::string error = error_of([&] { again.trainer.fit(other, &again.validation); });
  EXPECT_NE(error.find("got training data shuffled with seed 5 in the middle of an epoch that was "
                       "begun with them shuffled with seed 4"),
            std::string::npos)
      << error;
  EXPECT_EQ(again.trainer.steps(), 3);
  again.fit();
  EXPECT_EQ(again.trainer.steps(), 9);
}

// A loop over the training loader within fit() takes the epoch away from it.
TEST(RunMistakes, ALoopInsideFitNeedsALoaderOfItsOwn) {
  for (const bool to_its_end : {true, false}) {
    data::Loader* loader = nullptr;
    ToyRun run({.epochs = 2, .callbacks = {{.step = [&](const RunView& view) {
                               if (view.step == 2) {
                                 for (const data::Batch& batch : *loader) {
                                   if (batch.size > 0 && !to_its_end) {
                                     break;
                                   }
                                 }
                               }
                             }}}});
    loader = &run.train;
    const std::string error = error_of([&] { run.fit(); });
    EXPECT_NE(error.find("a loader of its own"), std::string::npos) << error;
  }
}

TEST(RunMistakes, APredictionWithoutTargetsSaysWhatToDo) {
  ToyRun run({.epochs = 1});
  data::Loader bare(data::TensorDataset({{"x", ones({8, kInputs})}}), {.batch = 8});
  const std::string error = error_of([&] { run.trainer.predict(bare); });
  EXPECT_NE(error.find("got no field 'y'"), std::string::npos) << error;
  EXPECT_NE(error.find("TrainerOptions::predict_step"), std::string::npos) << error;
}

}  // namespace
}  // namespace binade::train::run_mistakes_test
