// Tests the loop of the Trainer: limits, validation, the sanity check, monitoring, callbacks.
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::loop_test {
namespace {

using binade::testing::TemporaryDirectory;
using namespace toy;

// limits ------------------------------------------------------------------------------------------

struct Limit {
  const char* what;
  TrainerOptions options;
  int64_t steps, epoch;
  std::string reason;
};

TEST(Loop, EndsAtTheFirstLimit) {
  const Limit cases[] = {
      {"epochs", {.epochs = 2}, 10, 2, ""},
      {"steps in mid-epoch", {.max_steps = 7}, 7, 1, "max_steps 7"},
      {"steps at the end of an epoch", {.max_steps = 10}, 10, 2, "max_steps 10"},
      {"more steps than epochs", {.epochs = 1, .max_steps = 100}, 5, 1, ""},
      {"more than ten epochs", {.max_steps = 60, .patience = 0}, 60, 12, "max_steps 60"},
      {"no time", {.max_time = 1e-9}, 0, 0, "max_time 1e-09"},
      {"accumulation", {.max_steps = 4, .accumulate = 2}, 4, 1, "max_steps 4"},
      {"limited batches", {.epochs = 3, .limit_batches = {.train = 2}}, 6, 3, ""},
      {"a limit beyond the epoch", {.epochs = 1, .limit_batches = {.train = 99}}, 5, 1, ""},
  };
  for (const Limit& c : cases) {
    SCOPED_TRACE(c.what);
    ToyRun run(c.options);
    run.fit();
    EXPECT_EQ(run.trainer.steps(), c.steps);
    EXPECT_EQ(run.trainer.epoch(), c.epoch);
    EXPECT_EQ(run.trainer.stop_reason(), c.reason);
  }
}

// The steps after which validation ran.
std::vector<int64_t> validated_steps(TrainerOptions options) {
  std::vector<int64_t> steps;
  options.callbacks = {{.validation = [&](const RunView& run) { steps.push_back(run.step); }}};
  ToyRun run(options);
  run.fit();
  return steps;
}

TEST(Loop, ValidatesWhenItIsAskedTo) {
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(validated_steps({.epochs = 3}), (Steps{5, 10, 15}));
  EXPECT_EQ(validated_steps({.epochs = 3, .validate_every = {.epochs = 2}}), (Steps{10, 15}));
  EXPECT_EQ(validated_steps({.epochs = 2, .validate_every = {.steps = 4}}), (Steps{4, 8, 10}));
  EXPECT_EQ(validated_steps({.epochs = 2, .validate_every = {.steps = 5}}), (Steps{5, 10}));
  EXPECT_EQ(validated_steps({.max_steps = 7, .validate_every = {.steps = 3}}), (Steps{3, 6, 7}));
}

TEST(Loop, LimitsTheBatchesOfValidationAndTest) {
  ToyRun run({.epochs = 1, .limit_batches = {.validation = 1, .test = 2}});
  EXPECT_EQ(run.trainer.validate(run.validation).samples, 5);
  EXPECT_EQ(run.trainer.test(run.validation).samples, 10);
}

TEST(Loop, OverfitsAFewBatches) {
  std::vector<std::vector<int64_t>> epochs(3);
  std::vector<double> train, validation;
  const auto step = [&](nn::Module& model, const data::Batch& batch) {
    StepOutput output = regression_step(model, batch);
    output.log.clear();
    return output;
  };
  TrainerOptions options{.epochs = 3, .step = step, .overfit_batches = 2};
  options.callbacks = {
      {.step =
           [&](const RunView& run) {
             auto& ids = epochs[static_cast<size_t>(run.epoch)];
             ids.insert(ids.end(), run.data->indices.begin(), run.data->indices.end());
           },
       .validation =
           [&](const RunView& run) { validation.push_back(run.value("validation_loss")); }}};
  ToyRun run(options);
  run.fit();
  EXPECT_EQ(epochs[0].size(), 16u);
  EXPECT_EQ(epochs[0], epochs[1]);
  EXPECT_EQ(epochs[0], epochs[2]);
  EXPECT_EQ(validation.size(), 3u);
}

// If validation uses the training loader, the epoch continues where it was.
TEST(Loop, ValidatingOnTheTrainingLoaderInMidEpochLosesNoBatch) {
  std::vector<int64_t> firsts;
  TrainerOptions options{.epochs = 1, .validate_every = {.steps = 2}};
  options.callbacks = {{.step = [&](const RunView& run) { firsts.push_back(run.data->first); }}};
  ToyRun run(options);
  run.trainer.fit(run.train, &run.train);
  EXPECT_EQ(firsts, (std::vector<int64_t>{0, 8, 16, 24, 32}));
}

// the sanity check --------------------------------------------------------------------------------

TEST(Loop, TheSanityCheckLeavesNoTrace) {
  const auto numbers = [](int64_t batches) {
    manual_seed(3);
    ToyRun run({.epochs = 2, .patience = 0, .sanity_batches = batches});
    std::vector<double> values;
    run.fit();
    values = numbers_of(run.model);
    values.push_back(static_cast<double>(generator().offset));
    for (const auto& [name, value] : run.trainer.values()) {
      if (name != "samples_per_second") {
        values.push_back(value);
      }
    }
    return values;
  };
  EXPECT_EQ(numbers(0), numbers(2));
}

TEST(Loop, TheSanityCheckFindsMistakesBeforeTheFirstStep) {
  int64_t trained = 0;
  const TrainingStep bad = [&](nn::Module& model, const data::Batch& batch) {
    trained += model.is_training();
    return model.is_training() ? mse_loss(model(batch["x"]), batch["y"]) : model(batch["z"]);
  };
  for (const int64_t batches : {2, 0}) {
    ToyRun run({.epochs = 1, .step = bad, .sanity_batches = batches});
    const std::string error = error_of([&] { run.fit(); });
    EXPECT_NE(error.find("'z'"), std::string::npos) << error;
    EXPECT_EQ(error.find("sanity check") != std::string::npos, batches > 0) << error;
    EXPECT_EQ(trained == 0, batches > 0);
  }
}

// what is monitored -------------------------------------------------------------------------------

int64_t best_of(const std::vector<double>& script, const std::string& monitor, Mode mode) {
  Counted model;
  int64_t looks = 0, best = -1;
  std::vector<std::vector<double>> weights;
  TrainerOptions options{
      .epochs = static_cast<int64_t>(script.size()),
      .patience = 0,
      .validation_step = [&](nn::Module& net, const data::Batch& batch) -> StepOutput {
        const Tensor loss = mse_loss(net(batch["x"]), batch["y"]);
        return {.loss = loss * 0.0, .log = {{"score", script[static_cast<size_t>(looks)]}}};
      },
      .monitor = monitor,
      .mode = mode,
      .sanity_batches = 0,
      .callbacks = {{.validation = [&](const RunView&) {
        ++looks;
        weights.push_back(numbers_of(model));
      }}}};
  ToyRun run(options, model, nullptr);
  run.fit();
  const std::vector<double> end = numbers_of(model);
  for (size_t i = 0; i < weights.size(); ++i) {
    best = weights[i] == end ? static_cast<int64_t>(i) : best;
  }
  return best;
}

TEST(Loop, TheMonitoredValueAndItsModeChooseTheWeights) {
  EXPECT_EQ(best_of({3, 5, 1, 2}, "validation_score", Mode::max), 1);
  EXPECT_EQ(best_of({3, 5, 1, 2}, "validation_score", Mode::min), 2);
  EXPECT_EQ(best_of({NAN, 5, NAN, 7}, "validation_score", Mode::min), 1);
  EXPECT_EQ(best_of({3, 5, 1, 2}, "", Mode::automatic), 0) << "equal losses";
}

TEST(Loop, PatienceCountsLooks) {
  ToyRun run({.max_steps = 100,
              .patience = 3,
              .validation_step =
                  [](nn::Module& model, const data::Batch& batch) {
                    return mse_loss(model(batch["x"]), batch["y"]) * 0.0;
                  },
              .validate_every = {.steps = 2}});
  run.fit();
  EXPECT_EQ(run.trainer.steps(), 8);
  EXPECT_EQ(run.trainer.stop_reason(), "patience: validation_loss was not better 3 times");
}

struct Mistake {
  TrainerOptions options;
  bool validates;
  std::vector<std::string> parts;
};

TEST(Loop, MistakesAreOneErrorBeforeTheFirstStep) {
  const Mistake cases[] = {
      {{.monitor = "validation_acuracy", .mode = Mode::max},
       true,
       {"got monitor 'validation_acuracy'", "validation_loss, validation_mean_error"}},
      {{.monitor = "train_acuracy", .mode = Mode::max}, true, {"got monitor 'train_acuracy'"}},
      {{.monitor = "validation_loss"}, false, {"no validation loader"}},
      {{.keep_eval = {"bn*"}}, false, {"got keep_eval 'bn*'", "first, dropout, last"}},
      {{.metrics = {MeanAbsoluteError({.target = "yy"})}}, true, {"'yy'", "sanity check"}},
      {{.metrics = {MeanAbsoluteError({.name = "rows", .target = "y"})}},
       true,
       {"two values named rows"}},
      {{.step = [](nn::Module& model, const data::Batch& batch) -> StepOutput {
         const Tensor y = model(batch["x"]);
         return {.loss = mse_loss(y, batch["y"]), .log = {{"loss", 1}}};
       }},
       false,
       {"logs a value named 'loss'"}},
      {{.step = [](nn::Module& model, const data::Batch& batch) -> StepOutput {
         const Tensor y = model(batch["x"]);
         return {.loss = mse_loss(y, batch["y"]), .log = {{"y", y}}};
       }},
       false,
       {"the log value y has shape [8, 1]"}},
      {{.validation_step = [](nn::Module& model, const data::Batch& batch) -> StepOutput {
         const Tensor y = model(batch["x"]);
         return {.loss = mse_loss(y, batch["y"]), .log = {{"loss", 1}}};
       }},
       true,
       {"logs a value named 'loss'", "sanity check"}},
  };
  for (const Mistake& c : cases) {
    int64_t steps = 0;
    TrainerOptions options = c.options;
    options.callbacks = {{.step = [&](const RunView&) { ++steps; }}};
    ToyRun run(options);
    const std::string error =
        error_of([&] { run.trainer.fit(run.train, c.validates ? &run.validation : nullptr); });
    for (const std::string& part : c.parts) {
      EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
    }
    EXPECT_EQ(steps, 0);
    EXPECT_EQ(run.adam.step_count(), 0);
  }
  EXPECT_NE(error_of([] { ToyRun({.monitor = "validation_score"}); }).find("without a mode"),
            std::string::npos);
  EXPECT_NE(error_of([] { ToyRun({.monitor = "accuracy"}); }).find("begins with train_"),
            std::string::npos);
}

// After a mistake the user corrects the program and starts it again in the same directory.
TEST(Loop, ARunThatFailedBeforeItsFirstStepLeavesNothing) {
  const TemporaryDirectory directory;
  for (const char* monitor : {"validation_los_loss", "validation_loss"}) {
    ToyRun run({.epochs = 1, .run = directory / "run", .monitor = monitor});
    const std::string error = error_of([&] { run.fit(); });
    EXPECT_EQ(error == "none", std::string(monitor) == "validation_loss") << error;
  }
}

TEST(Loop, FloatLabelsForAClassifierAreAnError) {
  const data::TensorDataset set({{"images", randn({8, 4})}, {"labels", randn({8})}});
  data::Loader loader(set, {.batch = 4, .workers = 0});
  nn::Linear model({.in = 4, .out = 3});
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  Trainer trainer({.model = model, .optimizer = sgd}, {.epochs = 1, .progress = false});
  const std::string error = error_of([&] { trainer.fit(loader, &loader); });
  EXPECT_NE(error.find("got labels of dtype f32 for a classification"), std::string::npos) << error;
  EXPECT_EQ(trainer.steps(), 0);
}

TEST(Loop, AStepForAnotherModelClassIsAnError) {
  Counted model;
  ToyRun run({.epochs = 1, .step = vae_step}, model, nullptr);
  const std::string error = error_of([&] { run.fit(); });
  EXPECT_NE(error.find("got a model of class "), std::string::npos) << error;
  EXPECT_NE(error.find("Vae"), std::string::npos) << error;
}

// callbacks ---------------------------------------------------------------------------------------

TEST(Loop, CallbacksSeeTheRun) {
  const TemporaryDirectory directory;
  std::string events;
  TrainerOptions options{.epochs = 2, .run = directory / "run"};
  const auto note = [&](const RunView& run) {
    events += text(to_string(run.event), " ", run.epoch, " ", run.step, "; ");
  };
  options.limit_batches.train = 2;
  options.callbacks = {{.train_start = note,
                        .train_end = note,
                        .epoch_start = note,
                        .epoch_end = note,
                        .validation = note,
                        .checkpoint = note}};
  options.callbacks.push_back({.step = [&](const RunView& run) {
    EXPECT_EQ(run.data->size, 8);
    EXPECT_FALSE(run.output->output.requires_grad());
    EXPECT_GT(run.output->loss.item(), 0);
    EXPECT_EQ(&run.model, &run.optimizer() ? &run.model : nullptr);
    EXPECT_EQ(run.rank, 0);
    EXPECT_NE(error_of([&] { (void)run.value("validation_nothing"); }).find("got no value named"),
              std::string::npos);
  }});
  ToyRun run(options);
  run.fit();
  EXPECT_EQ(events,
            "train_start 0 0; epoch_start 0 0; validation 0 2; checkpoint 1 2; epoch_end 0 2; "
            "epoch_start 1 2; validation 1 4; checkpoint 2 4; epoch_end 1 4; train_end 2 4; ");
}

TEST(Loop, TheFirstReasonToStopStays) {
  const auto stop = [](const char* why) { return [why](const RunView& run) { run.stop(why); }; };
  ToyRun run({.epochs = 4, .callbacks = {{.step = stop("first")}, {.step = stop("second")}}});
  run.fit();
  EXPECT_EQ(run.trainer.stop_reason(), "first");
}

TEST(Loop, ACallbackEndsTheRun) {
  const std::pair<const char*, int64_t> cases[] = {
      {"train_start", 0}, {"epoch_start", 0}, {"step", 3}, {"validation", 5}, {"epoch_end", 5}};
  for (const auto& [where, steps] : cases) {
    SCOPED_TRACE(where);
    const auto stop = [](const RunView& run) {
      if (run.event != Event::step || run.step == 3) {
        run.stop("enough");
      }
    };
    Callbacks callbacks;
    (std::string(where) == "train_start"   ? callbacks.train_start
     : std::string(where) == "epoch_start" ? callbacks.epoch_start
     : std::string(where) == "step"        ? callbacks.step
     : std::string(where) == "validation"  ? callbacks.validation
                                           : callbacks.epoch_end) = stop;
    ToyRun run({.epochs = 4, .callbacks = {callbacks}});
    run.fit();
    EXPECT_EQ(run.trainer.steps(), steps);
    EXPECT_EQ(run.trainer.stop_reason(), "enough");
  }
}

TEST(Loop, CallbacksHearOfAnException) {
  std::string heard;
  TrainerOptions options{.epochs = 1};
  options.callbacks = {{.step = [](const RunView& run) { check(run.step < 2, "enough of it"); },
                        .exception = [&](const RunView& run) { heard = run.error->what(); }}};
  ToyRun run(options);
  EXPECT_EQ(error_of([&] { run.fit(); }), "enough of it");
  EXPECT_EQ(heard, "enough of it");
}

}  // namespace
}  // namespace binade::train::loop_test
