// The state machine as a table: the events, and the scale and the count after them.
#include <binade/kernels/base/error.h>
#include <binade/optim/scaler_state.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace binade::optim::scaler_state_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Row {
  const char* name;
  LossScalerOptions options;
  std::string steps;  // '.' finite, 'x' overflow
  double scale;
  int64_t tracker, skipped;
};

const Row kTable[] = {
    {"nothing yet", {}, "", 0x1p16, 0, 0},
    {"counts up", {.growth_interval = 4}, "...", 0x1p16, 3, 0},
    {"grows", {.growth_interval = 4}, "....", 0x1p17, 0, 0},
    {"grows twice", {.growth_interval = 2}, "....", 0x1p18, 0, 0},
    {"overflow resets the count", {.growth_interval = 4}, "...x...", 0x1p15, 3, 1},
    {"overflow just before growth", {.growth_interval = 4}, "...x....", 0x1p16, 0, 1},
    {"storm", {.growth_interval = 4}, "xxxxxxxx", 0x1p8, 0, 8},
    {"stops at max", {.growth_interval = 1, .max_scale = 0x1p18}, ".....", 0x1p18, 0, 0},
    {"stops at min", {.min_scale = 0x1p14}, "xxxxx", 0x1p14, 0, 5},
    {"below one", {.init_scale = 1}, "xxx", 0x1p-3, 0, 3},
    {"growth to the limit is cut",
     {.init_scale = 1024, .growth_factor = 4, .growth_interval = 1, .max_scale = 2048},
     ".",
     2048,
     0,
     0},
    {"hysteresis keeps the scale at first", {.hysteresis = 3}, "x.x", 0x1p16, 0, 2},
    {"hysteresis, then every overflow", {.hysteresis = 3}, "x.x.x.x", 0x1p14, 0, 4},
    {"growth forgets overflows", {.growth_interval = 2, .hysteresis = 2}, "x..x", 0x1p17, 0, 2},
    {"float limit",
     {.init_scale = 0x1p127, .growth_interval = 1, .min_scale = 0, .max_scale = kInf},
     "...",
     0x1p127,
     0,
     0},
    {"other factors",
     {.init_scale = 1024,
      .growth_factor = 1.5,
      .backoff_factor = 0.25,
      .growth_interval = 2,
      .power_of_two = false},
     "..x..",
     1024 * 1.5 * 0.25 * 1.5,
     0,
     1},
};

TEST(ScalerState, Table) {
  for (const Row& row : kTable) {
    ScalerState state(row.options);
    for (char step : row.steps) {
      state.update(step == 'x');
    }
    EXPECT_EQ(state.scale(), row.scale) << row.name;
    EXPECT_EQ(state.growth_tracker(), row.tracker) << row.name;
    EXPECT_EQ(state.skipped_steps(), row.skipped) << row.name;
  }
}

TEST(ScalerState, KnowsItsFloor) {
  ScalerState state({.init_scale = 4, .min_scale = 1});
  EXPECT_FALSE(state.at_floor());
  state.update(true);
  EXPECT_FALSE(state.at_floor());
  state.update(true);
  EXPECT_TRUE(state.at_floor());
  EXPECT_TRUE(ScalerState({.backoff_factor = 1}).at_floor());
}

TEST(ScalerState, RefusesBadOptions) {
  for (const LossScalerOptions& options :
       {LossScalerOptions{.init_scale = 0}, LossScalerOptions{.init_scale = NAN},
        LossScalerOptions{.init_scale = kInf, .max_scale = kInf},
        LossScalerOptions{.growth_factor = 0.5}, LossScalerOptions{.backoff_factor = 0},
        LossScalerOptions{.backoff_factor = 2}, LossScalerOptions{.growth_interval = 0},
        LossScalerOptions{.hysteresis = 0}, LossScalerOptions{.init_scale = 1000},
        LossScalerOptions{.growth_factor = 1.5}, LossScalerOptions{.init_scale = 2, .min_scale = 4},
        LossScalerOptions{.min_scale = -1}}) {
    EXPECT_THROW(ScalerState{options}, Error);
  }
  ScalerState state({});
  EXPECT_THROW(state.restore(0, 0, 0, 0), Error);
  EXPECT_THROW(state.restore(1, 0, 0, -1), Error);
  state.restore(32, 5, 7, 2);
  EXPECT_EQ(state.scale(), 32);
  EXPECT_EQ(state.overflows(), 2);
}

}  // namespace
}  // namespace binade::optim::scaler_state_test
