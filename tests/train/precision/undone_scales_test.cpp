// Delayed scales of a step that runs again: black boxes hold the histories that the step had, and a
// step that was undone leaves those that the model had.
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/format_histories.h>
#include <binade/train/precision/black_box.h>

#include <filesystem>

#include "planted_run.h"
#include "tests/train/loop/toy_tasks.h"

namespace binade::train::test::undone_scales_test {
namespace {

// Histories that are full, and begin anew, within the steps of a test.
Precision delayed_precision() {
  const FormatScheme forward = format_scheme("e4m3fn/delayed=3");
  return with_formats(
      Precision::mixed(DType::f16),
      {.weights = forward, .activations = forward, .gradients = format_scheme("e5m2/delayed=4")});
}

std::string hash_of_scales(const nn::Module& model) {
  return state_hash(nn::format_histories(model));
}

class ThreadsBefore {
 public:
  ~ThreadsBefore() { set_threads(0); }
};

// The training of a PlantedRun, without a Trainer.
struct HandRun {
  HandRun(const Plant& plant, uint64_t seed)
      : step(planted_step(plant)), rows(planted_data(plant, seed)) {
    net.to(Device{}, delayed_precision());
    adam.emplace(net.parameters(), optim::AdamWOptions{.lr = 1e-3});
    for (data::Batch batch : loader.epoch(0)) {
      batches.push_back(std::move(batch));
    }
  }
  void backward(const data::Batch& batch, double weight = 1) {
    scaler.scale(step(net, batch).loss, weight).backward();
  }
  // Trains from the step that comes next to the one before `end`.
  void train(int64_t end) {
    for (; done < end; ++done) {
      backward(batches[static_cast<size_t>(done)]);
      (void)scaler.step(*adam);
    }
  }
  // The step of these batches, of equal weight.
  StepToDiagnose to_diagnose(const TrainingStep& any, int64_t first, int64_t count = 1) {
    StepToDiagnose again{.model = net,
                         .step = any,
                         .parameters = net.parameters(),
                         .batches = {},
                         .scale = scaler.scale()};
    for (int64_t i = first; i < first + count; ++i) {
      again.batches.push_back(
          {batches[static_cast<size_t>(i)], 1.0 / static_cast<double>(count), generator()});
    }
    return again;
  }

  TrainingStep step;
  data::TensorDataset rows;
  data::Loader loader{rows, {.batch = kRowsOfBatch, .workers = 0, .shuffle = false}};
  PlantNet net;
  std::optional<optim::AdamW> adam;
  optim::LossScaler scaler{{.init_scale = 1024}};
  std::vector<data::Batch> batches;
  int64_t done = 0;
};

TEST(UndoneScales, ABlackBoxHasTheHistoriesOfItsStep) {
  const ThreadsBefore before;
  for (const OverflowCause cause : {OverflowCause::stale_gradients, OverflowCause::forward_overflow,
                                    OverflowCause::zero_division, OverflowCause::scale_too_high}) {
    for (const int64_t step : {0, 2, 9}) {
      SCOPED_TRACE(text(to_string(cause), " in step ", step));
      const Plant plant{.cause = cause, .step = step, .variant = 2};
      const PlantedRun run(plant, 31, delayed_precision());
      ASSERT_EQ(run.error, "");
      ASSERT_TRUE(std::filesystem::exists(run.box()));
      BlackBox box = read_black_box(run.box());
      HandRun hand(plant, 31);
      hand.train(step);
      EXPECT_EQ(state_hash(box.scales), hash_of_scales(hand.net));
      EXPECT_EQ(box.scales.size(), step == 0 ? 0U : 6U);
      for (const int threads : {1, 2, 3}) {
        set_threads(threads);
        const BlackBoxReplay again = replay(box, make_plant_net, run.step);
        EXPECT_EQ(again.report.cause, cause) << again.report.text;
        EXPECT_TRUE(again.bit_equal) << to_text(box, again);
      }
      if (cause == OverflowCause::stale_gradients && step > 0) {  // most gradients are finite
        box.scales.clear();
        EXPECT_FALSE(replay(box, make_plant_net, run.step).bit_equal) << "the histories count";
      }
    }
  }
}

// Neither the step that runs again, nor its runs at other loss scales, nor one that throws.
TEST(UndoneScales, AStepThatRunsAgainLeavesTheHistoriesOfTheModel) {
  const Plant plant{.cause = OverflowCause::scale_too_high, .step = 6, .variant = 2};
  HandRun plain(plant, 32), looked(plant, 32);
  const TrainingStep throws = [&](nn::Module& model, const data::Batch& batch) -> StepOutput {
    (void)planted_step({})(model, batch);
    fail("it was asked to");
  };
  for (int64_t step = 0; step < kSteps; ++step) {
    const std::string before = hash_of_scales(looked.net);
    StepToDiagnose again = looked.to_diagnose(looked.step, step);
    (void)diagnose_overflow(again);
    EXPECT_EQ(hash_of_scales(looked.net), before) << step;
    again.scales = NamedTensors{};  // of an earlier step
    (void)run_step(again, 8, true);
    EXPECT_EQ(hash_of_scales(looked.net), before) << step;
    EXPECT_THROW((void)run_step(looked.to_diagnose(throws, step), 8, false), Error);
    EXPECT_EQ(hash_of_scales(looked.net), before) << step;
    plain.train(step + 1);
    looked.train(step + 1);
  }
  EXPECT_EQ(hash_of_scales(looked.net), hash_of_scales(plain.net));
  EXPECT_EQ(state_hash(looked.net.exact_state()), state_hash(plain.net.exact_state()));
  EXPECT_EQ(looked.scaler.scale(), plain.scaler.scale());
}

// A diagnosis comes after the step, when the histories have gone on.
TEST(UndoneScales, AStepRunsAgainWithTheHistoriesThatItHad) {
  for (const int64_t micro_batches : {1, 3}) {
    HandRun run({}, 33);
    run.train(5);
    const NamedTensors before = nn::format_histories(run.net);
    StepToDiagnose again = run.to_diagnose(run.step, 5, micro_batches);
    for (int64_t i = 0; i < micro_batches; ++i) {
      run.backward(run.batches[static_cast<size_t>(5 + i)],
                   1.0 / static_cast<double>(micro_batches));
    }
    const std::string gradients = state_hash(stored_gradients(run.net.parameters()));
    const std::string after = hash_of_scales(run.net);
    EXPECT_NE(after, state_hash(before));
    EXPECT_NE(run_step(again, again.scale, true).gradients, gradients) << "the histories count";
    again.scales = before;
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_EQ(run_step(again, again.scale, true).gradients, gradients) << micro_batches;
      EXPECT_EQ(hash_of_scales(run.net), after);
    }
  }
}

// The planted micro-batch is the second one of its step.
TEST(UndoneScales, AnAccumulatedStepBeginsBeforeItsFirstMicroBatch) {
  const Plant plant{.cause = OverflowCause::stale_gradients, .step = 7, .variant = 1};
  const TrainingStep planted = planted_step(plant);
  const testing::TemporaryDirectory directory;
  std::string wanted;
  {
    data::TensorDataset rows(planted_data(plant, 34));
    data::Loader loader(rows, {.batch = kRowsOfBatch, .workers = 0, .shuffle = false});
    PlantNet net;
    net.to(Device{}, delayed_precision());
    optim::AdamW adam(net.parameters(), {.lr = 1e-3});
    optim::LossScaler scaler({.init_scale = 1024});
    Trainer({.model = net, .optimizer = adam, .scaler = &scaler},
            {.epochs = 1,
             .accumulate = 2,
             .run = directory / "run",
             .progress = false,
             .step =
                 [&](nn::Module& model, const data::Batch& batch) {
                   if (batch.first == 6 * kRowsOfBatch && wanted.empty()) {
                     wanted = hash_of_scales(model);
                   }
                   return planted(model, batch);
                 },
             .black_box = {.bytes = 1 << 20}})
        .fit(loader);
  }
  const BlackBox box = read_black_box(directory / "run/blackbox.safetensors");
  EXPECT_EQ(box.batches.size(), 2U);
  EXPECT_EQ(state_hash(box.scales), wanted);
  const BlackBoxReplay again = replay(box, make_plant_net, planted);
  EXPECT_TRUE(again.bit_equal) << to_text(box, again);
}

// The second phase of a step begins with the histories that the first one has left.
TEST(UndoneScales, EachPhaseHasTheHistoriesOfItsOwnForward) {
  for (const std::string bad : {"discriminator", "generator"}) {
    const testing::TemporaryDirectory directory;
    std::string wanted;
    const auto planted = [&](const char* phase, Tensor (*loss)(toy::Gan&, const data::Batch&)) {
      return [&, phase, loss, calls = 0](toy::Gan& gan, const data::Batch& batch) mutable {
        const bool here = phase == bad && ++calls == 5;
        if (here) {
          wanted = hash_of_scales(gan);
        }
        const Tensor value = loss(gan, batch);
        return here ? mul(value, INFINITY) : value;
      };
    };
    data::TensorDataset rows = toy::rows(40, 1);
    data::Loader loader(rows, {.batch = 4, .workers = 0});
    toy::Gan gan;
    gan.to(Device{}, delayed_precision());
    optim::AdamW d(gan.discriminator(), {.lr = 0.02}), g(gan.generator.parameters(), {.lr = 0.01});
    optim::LossScaler d_scaler({.init_scale = 1024}), g_scaler({.init_scale = 512});
    Trainer(
        {.model = gan,
         .phases = {{.name = "discriminator",
                     .optimizer = d,
                     .step = planted("discriminator", toy::discriminator_loss),
                     .scaler = &d_scaler},
                    {.name = "generator",
                     .optimizer = g,
                     .step = planted("generator", toy::generator_loss),
                     .scaler = &g_scaler}}},
        {.epochs = 1, .run = directory / "run", .progress = false, .black_box = {.bytes = 1 << 20}})
        .fit(loader);
    const BlackBox box = read_black_box(directory / "run/blackbox.safetensors");
    EXPECT_EQ(box.step, 4);
    EXPECT_EQ(state_hash(box.scales), wanted) << bad;
  }
}

}  // namespace
}  // namespace binade::train::test::undone_scales_test
