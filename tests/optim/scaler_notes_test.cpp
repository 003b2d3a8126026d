#include <binade/optim/scaler_notes.h>
#include <gtest/gtest.h>

namespace binade::optim::scaler_notes_test {
namespace {

TEST(ScalerNotes, AFirstOverflowIsOneCalmLine) {
  ScalerNotes notes({});
  EXPECT_EQ(notes.look(5, 0, 0x1p16).text, "");
  const ScalerNote note = notes.look(6, 1, 0x1p15);
  EXPECT_FALSE(note.warning);
  EXPECT_EQ(note.text, "loss scale: calibrating, 65536 -> 32768 after 1 skipped step; normal");
  EXPECT_EQ(notes.look(7, 2, 0x1p14).text, "");  // once
  EXPECT_EQ(notes.look(40, 16, 1).text, "");     // down to 1
}

TEST(ScalerNotes, WarnsOfMoreThanCalibrationAndGrowthExplain) {
  ScalerNotes notes({});
  const ScalerNote note = notes.look(40, 17, 0.5);
  EXPECT_TRUE(note.warning);
  EXPECT_NE(note.text.find("17 of 40 steps were skipped, more than the 16"), std::string::npos)
      << note.text;
  EXPECT_EQ(notes.look(41, 18, 0.25).text, "");
  EXPECT_TRUE(notes.look(80, 34, 0x1p-18).warning);  // twice as many
}

TEST(ScalerNotes, EachGrowthMayCostAnOverflow) {
  ScalerNotes notes({.growth_interval = 100});
  for (int64_t steps = 1000; steps <= 100000; steps += 1000) {
    const int64_t skipped = steps / 101;  // one per growth, for ever
    EXPECT_FALSE(notes.look(steps, skipped, 1024).warning) << steps;
  }
  EXPECT_TRUE(notes.look(100000, 1200, 1024).warning);
}

TEST(ScalerNotes, AFixedScaleIsMeantToFit) {
  ScalerNotes notes({.init_scale = 1000,
                     .growth_factor = 1,
                     .backoff_factor = 1,
                     .min_scale = 1000,
                     .max_scale = 1000,
                     .power_of_two = false});
  const ScalerNote note = notes.look(10, 1, 1000);
  EXPECT_TRUE(note.warning);
  EXPECT_NE(note.text.find("lower it"), std::string::npos) << note.text;
}

}  // namespace
}  // namespace binade::optim::scaler_notes_test
