// Tests the output of a run: progress with the remaining time, and a line for each line of metrics.
#include <binade/core/tensor/create.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/train/run_display_internal.h>
#include <gtest/gtest.h>

#include <limits>

namespace binade::train::run_display_test {
namespace {

TEST(RunDisplay, TimesAreShort) {
  EXPECT_EQ(time_words(0), "0:00");
  EXPECT_EQ(time_words(59.4), "0:59");
  EXPECT_EQ(time_words(59.6), "1:00");
  EXPECT_EQ(time_words(3599), "59:59");
  EXPECT_EQ(time_words(3 * 3600 + 62), "3:01:02");
  EXPECT_EQ(time_words(-5), "0:00");
  EXPECT_EQ(time_words(std::numeric_limits<double>::infinity()), "?");
}

TEST(RunDisplay, WithoutATerminalProgressIsALine) {
  const data::TensorDataset rows({{"x", zeros({4, 1})}});
  const data::Loader loader(rows, {.batch = 2, .workers = 0});
  const RunProgress now{.where = "epoch 2/10",
                        .step = "step 7",
                        .share = 0.25,
                        .loss = 0.5,
                        .lr = 0.001,
                        .scale = 1024,
                        .skipped = "1/7",
                        .samples_per_second = 300,
                        .seconds_left = 125};
  ::testing::internal::CaptureStdout();
  RunDisplay(true).progress(loader, now);
  RunDisplay(false).progress(loader, now);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "  epoch 2/10  step 7   25.0%  loss 0.5000  lr 1.00e-03  scale 1024  skipped 1/7  300 "
            "samples/s  ETA 2:05\n");
}

TEST(RunDisplay, ShowsEveryValueOfAValidation) {
  const ScalarRecord record{.step = 7,
                            .epoch = 1,
                            .values = {{"train_loss", 0.5},
                                       {"train_kl", 9},
                                       {"validation_loss", 0.25},
                                       {"validation_accuracy", 0.5},
                                       {"validation_mae", 0.125},
                                       {"samples_per_second", 10},
                                       {"learning_rate", 0.1},
                                       {"loss_scale", 1}},
                            .words = {}};
  ::testing::internal::CaptureStdout();
  RunDisplay(true).line(record, "epoch 2/10", "0/7");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "epoch 2/10  loss 0.5000  validation loss 0.2500  accuracy 50.00%  mae 0.125  lr "
            "1.00e-01  scale 1  skipped 0/7  10 samples/s\n");
}

}  // namespace
}  // namespace binade::train::run_display_test
