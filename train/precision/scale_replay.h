// Computes from the records of a run (train/precision/scaler_log.h) what another loss scale policy
// would have done to it.
//
//   const ScalerLog log = read_scaler_log("runs/1/scaler.jsonl");
//   const ScaleReplay r = replay(log, parse_scale_policy("dynamic:interval=200"));
//   r.skipped      // steps that would have been skipped
//
// Whether a step overflows at another scale follows from the largest gradient of the recorded step:
// f16 has no number from 65520 on. That holds as long as the two runs have the same weights. So the
// replay is exact up to the first step in which another scale changes the weights: one of the runs
// skips the step, or its gradients have bits that depend on the scale (subnormal numbers, and
// zeros, which may be numbers that f16 flushed). From there on it is a forecast: the gradients come
// from the recorded run, and the interval from nearby steps.
#pragma once
#include <binade/train/precision/scaler_log.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace binade::train {

struct ScalePolicy {
  std::string name;
  optim::LossScalerOptions options;
};

// "static:1024", "dynamic" (the defaults of LossScaler), or "dynamic:KEY=VALUE,..." with the keys
// init, growth, backoff, interval, hysteresis, min and max. Throws an error that lists them.
ScalePolicy parse_scale_policy(const std::string& text);

struct ScaleReplay {
  ScalePolicy policy;
  std::vector<double> scales;        // of each recorded step
  std::vector<bool> overflows = {};  // true if the step would have been skipped
  int64_t skipped = 0;
  // The first `exact` steps are exact. `boundary` says why the next one is not; empty if all are.
  int64_t exact = 0;
  std::string boundary = {};
  // A 95% interval for the number of skipped steps of a real run, estimated from gradients at
  // nearby steps. If `is_bound`, records had no sizes, and it is a bound instead.
  int64_t skipped_low = 0, skipped_high = 0;
  bool is_bound = false;
  // Mean over the steps of the share of gradients other than 0 that f16 flushes at these scales. A
  // lower bound if the run stored gradients in f16 itself.
  double flushed = 0;
  bool flushed_is_bound = false, flushed_is_known = false;
};

ScaleReplay replay(const ScalerLog& log, const ScalePolicy& policy);

// A table, and the boundary of each replay.
std::string to_text(const ScalerLog& log, std::span<const ScaleReplay> replays);

}  // namespace binade::train
