// The time of day, for records that people compare. It may jump: durations take a steady clock.
// Internal to train.
#pragma once
#include <string>

namespace binade::train {

double wall_seconds();    // since 1970
std::string wall_text();  // now, "2026-01-31T23:59:59Z"

}  // namespace binade::train
