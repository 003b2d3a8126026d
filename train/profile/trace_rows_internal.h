// What tables, flame graphs and the stall adviser share. Internal to train.
#pragma once
#include <string>

namespace binade::train {

// True for a phase whose time is work of its own, not that of the ops in it.
bool is_work(const std::string& phase);

}  // namespace binade::train
