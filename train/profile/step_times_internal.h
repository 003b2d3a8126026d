// The times of a step by what they are spent on: what the stall adviser knows. Internal to train.
#pragma once
#include <binade/train/profile/stalls.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace binade::train {

struct WaitTime {
  double calls = 0, milliseconds = 0, bytes = 0;  // per step
};

// Milliseconds per step.
struct StepTimes {
  int64_t steps = 0;
  double whole = 0;  // without validations and checkpoints
  StepShares times;  // milliseconds here
  LoaderTimes loader;
  // By name and file:line.
  std::map<std::pair<std::string, std::string>, WaitTime> waits, pageable;
  double ops = 0;            // per step
  double typical_cheap = 0;  // the time of a cheap op that computes: the tenth percentile
  double between_ops = 0;
  double cpu = 0;  // processor time of all threads; 0: unknown
  int64_t batch = 0;
  // At the end of each step.
  std::vector<double> allocated, graph_nodes;
};

StepTimes step_times(const Trace& trace);

}  // namespace binade::train
