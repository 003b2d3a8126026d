// Tests the cause of an overflow, and the black box, with planted mistakes: each must be named at
// the step in which it happens, and the step must run again with the same bits.
#include <binade/train/precision/black_box.h>

#include <cstdlib>
#include <filesystem>

#include "planted_run.h"

namespace binade::train::test::overflow_cause_test {
namespace {

// Set BINADE_OVERFLOW_PLANTS=10 for ten mistakes of each cause.
int plants() {
  const char* count = std::getenv("BINADE_OVERFLOW_PLANTS");
  return count ? std::atoi(count) : 2;
}

constexpr OverflowCause kCauses[] = {
    OverflowCause::bad_data,       OverflowCause::forward_overflow, OverflowCause::masked_overflow,
    OverflowCause::scale_too_high, OverflowCause::stale_gradients,  OverflowCause::zero_division};

class ThreadsBefore {
 public:
  ~ThreadsBefore() { set_threads(0); }
};

void expect_replay(const Plant& plant, const PlantedRun& run) {
  const ThreadsBefore before;
  const BlackBox box = read_black_box(run.box());
  EXPECT_EQ(box.step, plant.step);
  for (const int threads : {1, 2, 4}) {
    set_threads(threads);
    const BlackBoxReplay again = replay(box, make_plant_net, run.step);
    EXPECT_EQ(again.report.cause, plant.cause) << again.report.text;
    EXPECT_TRUE(again.bit_equal) << to_text(box, again);
    if (threads > 1) {
      continue;
    }
    ASSERT_EQ(again.wider.size(), 2u);
    const bool cured_by_f32 = plant.cause == OverflowCause::forward_overflow ||
                              plant.cause == OverflowCause::masked_overflow ||
                              plant.cause == OverflowCause::scale_too_high;
    if (plant.cause != OverflowCause::stale_gradients) {
      EXPECT_EQ(again.wider[0].is_finite, cured_by_f32) << to_text(box, again);
      EXPECT_EQ(again.wider[1].is_finite, cured_by_f32) << to_text(box, again);
    }
    ASSERT_FALSE(again.cures.empty());
    EXPECT_EQ(again.cures[0].is_finite, plant.cause == OverflowCause::scale_too_high);
  }
}

void expect_named(const Plant& plant) {
  SCOPED_TRACE(text(to_string(plant.cause), ", variant ", plant.variant));
  const PlantedRun run(plant, 100 + static_cast<uint64_t>(plant.variant));
  EXPECT_EQ(run.error, "");
  const bool normal = plant.cause == OverflowCause::scale_too_high;
  EXPECT_EQ(run.was_told(text("step ", plant.step, " was skipped")), !normal);
  EXPECT_EQ(run.was_told(to_string(plant.cause)), !normal);
  const ScalerLog log = run.log();
  ASSERT_EQ(log.records.size(), static_cast<size_t>(kSteps));
  for (const ScalerRecord& record : log.records) {
    EXPECT_EQ(record.overflow, record.step == plant.step) << record.step;
    EXPECT_EQ(record.cause, record.overflow ? to_string(plant.cause) : "");
    EXPECT_EQ(record.scale, record.step <= plant.step ? 1024 : 512);
  }
  expect_replay(plant, run);
}

TEST(OverflowCause, EveryPlantIsNamedInItsStep) {
  for (const OverflowCause cause : kCauses) {
    for (int variant = 0; variant < plants(); ++variant) {
      expect_named({.cause = cause, .step = (variant * 5 + 1) % kSteps, .variant = variant});
    }
  }
}

TEST(OverflowCause, CleanRunsGiveNoAlarm) {
  for (uint64_t seed = 1; seed <= 2 * static_cast<uint64_t>(plants()); ++seed) {
    const PlantedRun run({}, seed);
    EXPECT_EQ(run.error, "");
    EXPECT_TRUE(run.warnings.empty()) << run.warnings[0];
    EXPECT_FALSE(std::filesystem::exists(run.box()));
    for (const ScalerRecord& record : run.log().records) {
      EXPECT_FALSE(record.overflow);
    }
  }
}

TEST(OverflowCause, TheFirstBadElementComesWithItsInputs) {
  const PlantedRun run({.cause = OverflowCause::forward_overflow, .step = 2, .variant = 1}, 7);
  const BlackBox box = read_black_box(run.box());
  const BlackBoxReplay again = replay(box, make_plant_net, run.step);
  ASSERT_TRUE(again.report.first);
  const Anomaly& first = *again.report.first;
  EXPECT_EQ(first.op, "mul_scalar");
  EXPECT_FALSE(first.in_backward);
  EXPECT_EQ(first.sizes, Dims({kRowsOfBatch, 16}));
  ASSERT_FALSE(first.inputs.empty());
  ASSERT_TRUE(first.inputs[0].value);
  EXPECT_TRUE(std::isfinite(*first.inputs[0].value));
  EXPECT_GE(std::abs(*first.inputs[0].value) * 500, 65520) << "its input is what overflows";
  EXPECT_NE(to_text(box, again).find("mul"), std::string::npos);
}

// A mask writes -inf on purpose; a backward's division by zero must not be blamed on it.
TEST(OverflowCause, AMaskIsNotToBlame) {
  PlantNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const TrainingStep step = [](nn::Module& model, const data::Batch& batch) {
    auto& own = dynamic_cast<PlantNet&>(model);
    const Tensor x = batch["x"].to(DType::f16);
    const Tensor h = own.fc1(x);
    const Tensor mask = arange(16).to(DType::f32) < 8.0;
    const Tensor masked = softmax(masked_fill(h, mask, -INFINITY), 1);
    return cross_entropy(own(x), batch.labels) + mean(masked).to(DType::f32) +
           mean(sqrt(h * 0.0)).to(DType::f32);
  };
  data::Batch batch;
  batch.set("x", randn({4, 12}));
  batch.set("labels", randint(0, 10, {4}));
  batch.size = 4;
  const OverflowReport report = diagnose_overflow({.model = net,
                                                   .step = step,
                                                   .parameters = net.parameters(),
                                                   .batches = {{batch, 1, generator()}},
                                                   .scale = 8});
  EXPECT_EQ(report.cause, OverflowCause::zero_division) << report.text;
  ASSERT_TRUE(report.first);
  EXPECT_EQ(report.first->op, "sqrt");
}

TEST(OverflowCause, ItPutsEverythingBack) {
  PlantNet net;
  nn::BatchNorm1d norm({.channels = 12});
  net.register_module("norm", norm);
  net.to(Device{}, Precision::mixed(DType::f16));
  const TrainingStep step = [&norm](nn::Module& model, const data::Batch& batch) {
    auto& own = dynamic_cast<PlantNet&>(model);
    const Tensor x = dropout(norm(batch["x"].to(DType::f16)), 0.5);
    return cross_entropy(own(x), batch.labels) * 1e9;
  };
  data::Batch batch;
  batch.set("x", randn({4, 12}));
  batch.set("labels", randint(0, 10, {4}));
  batch.size = 4;
  const std::string before = state_hash(net.state());
  const uint64_t offset = generator().offset;
  const OverflowReport report = diagnose_overflow({.model = net,
                                                   .step = step,
                                                   .parameters = net.parameters(),
                                                   .batches = {{batch, 1, generator()}},
                                                   .scale = 1});
  EXPECT_EQ(report.cause, OverflowCause::scale_too_high) << report.text;
  EXPECT_LT(report.fitting_scale, 1);
  EXPECT_EQ(state_hash(net.state()), before);
  EXPECT_EQ(generator().offset, offset);
  EXPECT_TRUE(stored_gradients(net.parameters()).empty());
}

TEST(BlackBox, ASmallLimitKeepsNothingAndSaysSo) {
  const testing::TemporaryDirectory directory;
  BlackBox box;
  box.stored = box.exact = {{"w", randn({1000})}};
  box.batches.emplace_back();
  EXPECT_GT(write_black_box(directory / "box", box, 100), 4000);
  EXPECT_FALSE(std::filesystem::exists(directory / "box"));
}

TEST(BlackBox, AnotherFileIsAnError) {
  const testing::TemporaryDirectory directory;
  save_tensors(directory / "model", {{"w", randn({3})}});
  try {
    (void)read_black_box(directory / "model");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("without a recorded step"), std::string::npos);
  }
  save_tensors(directory / "broken", {{"w", randn({3})}}, {{"black_box", "{}"}});
  EXPECT_THROW((void)read_black_box(directory / "broken"), Error);
}

}  // namespace
}  // namespace binade::train::test::overflow_cause_test
