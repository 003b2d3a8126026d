// The stall adviser: the shares of a training step, and what to change first.
//
//   const train::StallReport report = train::find_stalls({&profiler.trace(), 1});
//   std::cout << to_text(report);    // "workers 1 -> 2: predicted +38% ..."
//
// `binade bottleneck -- PROGRAM ARGS...` runs a program, prints the report, and verifies the
// prediction where the change is a setting.
#pragma once
#include <binade/train/profile/trace.h>

#include <span>
#include <string>
#include <vector>

namespace binade::train {

// Shares of the time of the steps, without validations and checkpoints. Stages of the loader's
// workers run beside the step, so they are in `workers` and not in the sum.
struct StepShares {
  double wait = 0;  // for the next batch
  // On the thread of the steps: a loader without workers.
  double read = 0, decode = 0, transform = 0, collate = 0;
  double copy = 0;  // of batches and other tensors to or from a device
  double forward = 0, backward = 0, reduction = 0, optimizer = 0;
  double host_waits = 0;  // item() and its like
  double other = 0;       // between phases: metrics, logs, callbacks
};

// The workers' own time per step, summed over them, in milliseconds.
struct LoaderTimes {
  int workers = 0;
  double read = 0, decode = 0, transform = 0, collate = 0;
  double total() const { return read + decode + transform + collate; }
};

struct Advice {
  // "leak", "workers", "read", "decode", "transform", "collate", "host wait", "pageable copy",
  // "batch", "ranks"
  std::string cause;
  std::string sentence;
  std::string where = {};    // file:line, module or setting
  double gain = 0;           // predicted: samples per second rise by this share; 0: not predicted
  std::string setting = {};  // "workers" or "batch": what `binade bottleneck` can try
  int64_t value = 0;         // of the setting
};

struct StallReport {
  StepShares shares;
  LoaderTimes loader;
  double step_milliseconds = 0;
  int64_t batch = 0;           // samples, per rank; 0: unknown
  std::vector<Advice> advice;  // what to change first comes first; empty: nothing stalls
};

// One trace per rank of a run. REQUIRES: at least one, with steps.
StallReport find_stalls(std::span<const Trace> ranks);
std::string to_text(const StallReport& report);

}  // namespace binade::train
