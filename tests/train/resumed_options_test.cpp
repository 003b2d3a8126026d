// Tests a run that is resumed with other options: those that change its steps need force, and the
// new values count; limits are stated.
#include <binade/optim/schedule.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/scripted_run.h"

namespace binade::train::resumed_options_test {
namespace {

using binade::testing::TemporaryDirectory;
using test::ScriptedModel;
using test::Warnings;

struct OwnOptions {
  double lr = 0.25, momentum = 0.5, weight_decay = 0;
  int64_t accumulate = 1, batch = 2, epochs = 2, patience = 10;
  std::optional<double> clip = std::nullopt;
  int64_t total = 0;  // of a cosine schedule; 0: none
  bool force = false;
};

struct OwnRun {
  std::string error, warnings;
  double lr = 0, momentum = 0;
  int64_t steps = 0;
};

// Each epoch of 8 samples.
OwnRun own_run(const std::string& run, const OwnOptions& o, bool resume) {
  OwnRun out;
  Warnings warnings;
  ScriptedModel model;
  optim::SGD sgd(model.parameters(),
                 {.lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay});
  std::optional<optim::Schedule> cosine;
  if (o.total > 0) {
    cosine.emplace(optim::CosineAnnealingLR(sgd, {.t_max = o.total}));
  }
  const test::LitPixels pixels(8);
  data::Loader train(pixels, {.batch = o.batch, .workers = 0});
  out.error = error_of([&] {
    Trainer trainer({.model = model, .optimizer = sgd, .schedule = cosine ? &*cosine : nullptr},
                    {.epochs = o.epochs,
                     .accumulate = o.accumulate,
                     .clip_norm = o.clip,
                     .patience = o.patience,
                     .run = run,
                     .resume = resume,
                     .force = resume && o.force,
                     .progress = false,
                     .step = test::unit_step(model)});
    trainer.fit(train);
    out.steps = trainer.steps();
  });
  out.lr = sgd.lr();
  out.momentum = sgd.momentum();
  out.warnings = warnings.all;
  return out;
}

TEST(ResumedOptions, OtherOptionsThatChangeTheStepNeedForce) {
  struct Case {
    OwnOptions options;
    std::vector<std::string> parts;
  };
  const Case kCases[] = {
      {{.lr = 0.125}, {"got lr = 0.125, but", "was trained with lr = 0.25"}},
      {{.momentum = 0.75}, {"got momentum = 0.75, but", "with momentum = 0.5"}},
      {{.weight_decay = 0.01}, {"got weight-decay = 0.01, but", "with weight-decay = 0"}},
      {{.accumulate = 2},
       {"got 4 samples per step (accumulate 2, 2 per batch of all ranks), but the run so far had 2 "
        "samples per step (accumulate 1, 2 per batch"}},
      {{.batch = 4}, {"got 4 samples per step (accumulate 1, 4 per batch"}},
      {{.clip = 3}, {"got clip = 3, but", "with clip = none"}},
      {{.lr = 0.125, .clip = 3}, {"got clip = 3, lr = 0.125, but"}},
  };
  for (const Case& test : kCases) {
    const TemporaryDirectory directory;
    const std::string run = directory / "run";
    ASSERT_EQ(own_run(run, {.epochs = 1}, false).error, "none");
    OwnOptions options = test.options;
    const OwnRun refused = own_run(run, options, true);
    options.force = true;
    const OwnRun forced = own_run(run, options, true);
    EXPECT_EQ(forced.error, "none");
    for (const std::string& part : test.parts) {
      EXPECT_NE(refused.error.find(part), std::string::npos) << refused.error;
      EXPECT_NE(forced.warnings.find(part), std::string::npos) << forced.warnings;
    }
    EXPECT_NE(refused.error.find("(--force)"), std::string::npos) << refused.error;
    EXPECT_EQ(forced.lr, options.lr) << "the new value counts";
    EXPECT_EQ(forced.momentum, options.momentum);
    EXPECT_EQ(forced.steps, 4 + 8 / (options.batch * options.accumulate));
    options.force = false;
    options.epochs = 3;
    EXPECT_EQ(own_run(run, options, true).error, "none") << "they are the run's options now";
  }
}

TEST(ResumedOptions, OtherLimitsAreStated) {
  struct Case {
    OwnOptions options;
    std::string line;
  };
  const Case kCases[] = {
      {{}, "resume: goes on with epochs = 2; "},
      {{.patience = 3}, "resume: goes on with epochs = 2, patience = 3; "},
      {{.accumulate = 2, .batch = 1},
       "resume: got 2 samples per step (accumulate 2, 1 per batch of all ranks), but the run so "
       "far had 2 samples per step (accumulate 1, 2 per"}};
  for (const Case& test : kCases) {
    const TemporaryDirectory directory;
    const std::string run = directory / "run";
    ASSERT_EQ(own_run(run, {.epochs = 1}, false).error, "none");
    const OwnRun resumed = own_run(run, test.options, true);
    EXPECT_EQ(resumed.error, "none");
    EXPECT_NE(resumed.warnings.find(test.line), std::string::npos) << resumed.warnings;
    EXPECT_EQ(own_run(run, test.options, true).warnings, "") << "nothing has changed";
  }
}

TEST(ResumedOptions, ASchedulesOtherLengthIsStated) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  ASSERT_EQ(own_run(run, {.epochs = 1, .total = 8}, false).error, "none");
  EXPECT_EQ(own_run(run, {.epochs = 1, .total = 8}, true).warnings, "");
  const OwnRun longer = own_run(run, {.epochs = 1, .total = 16}, true);
  EXPECT_EQ(longer.error, "none");
  EXPECT_NE(longer.warnings.find("resume: the schedule gives step 5 the learning rate 0.21"),
            std::string::npos)
      << longer.warnings;
  EXPECT_NE(longer.warnings.find("and gave it 0.125 before"), std::string::npos);
}

}  // namespace
}  // namespace binade::train::resumed_options_test
