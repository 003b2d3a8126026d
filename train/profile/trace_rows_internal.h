// What tables, flame graphs and the stall adviser share. Internal to train.
#pragma once
#include <string>

namespace binade::train {

// The counter of the processor time that the process has used, over all its threads, in
// milliseconds; it is read at the begin of a window and after each step.
inline constexpr const char* kCpuTime = "cpu time, ms";

// True for a phase whose time is work of its own, not that of the ops in it.
bool is_work(const std::string& phase);

}  // namespace binade::train
